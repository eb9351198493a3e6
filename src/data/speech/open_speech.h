#pragma once

#include <string>
#include <vector>

#include "data/speech/utterances.h"

// These functions list the recordings of the sets that data.type can name. path: the set's folder; parts: the parts
// that make up the split; empty: the usual parts. They throw UserError that names the file and says what is wrong with
// it.
namespace dgc {

// AN4 has a list for each split, so `parts` must be empty.
std::vector<Utterance> list_an4(const std::string& path, const std::vector<std::string>& parts, Split);
// parts: folders; usually all that begin with "train-" for training, and "test-clean" otherwise.
std::vector<Utterance> list_librispeech(const std::string& path, const std::vector<std::string>& parts, Split);
// parts: files; usually train.jsonl for training, and test.jsonl otherwise.
std::vector<Utterance> list_manifests(const std::string& path, const std::vector<std::string>& parts, Split);

}  // namespace dgc
