#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/speech/corpus.h"

namespace dgc {

struct SpeechDatasetOptions {
  std::string type;  // "an4", "librispeech" or "speech_manifest"
  std::string path;  // folder
  // Parts of a split. librispeech: folders (default: those that begin with "train-"; "test-clean"). speech_manifest:
  // files (default: train.jsonl; test.jsonl). an4 has none.
  std::vector<std::string> train, test;
  std::optional<int64_t> limit;  // only the first so many, as listed
  std::string alphabet = kEnglish;
  SpeechCorpusOptions corpus;
};

// Throws UserError, naming the file and what is wrong with it.
std::unique_ptr<SpeechCorpus> open_speech(const SpeechDatasetOptions&, Split);

}  // namespace dgc
