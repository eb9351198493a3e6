#pragma once

#include <string>
#include <vector>

#include "data/speech/utterances.h"

// What is to be heard of the sets of recordings that data.type can name. path: the set's folder; parts: of a split;
// empty: the usual ones. They throw UserError, naming the file and what is wrong with it.
namespace dgc {

// Has two lists of its own, and no parts.
std::vector<Utterance> list_an4(const std::string& path, const std::vector<std::string>& parts, Split);
// parts: folders; usually those that begin with "train-", and "test-clean".
std::vector<Utterance> list_librispeech(const std::string& path, const std::vector<std::string>& parts, Split);
// parts: files; usually train.jsonl, and test.jsonl.
std::vector<Utterance> list_manifests(const std::string& path, const std::vector<std::string>& parts, Split);

}  // namespace dgc
