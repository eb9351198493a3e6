#pragma once

#include <filesystem>
#include <string>

#include "data/text/vocabulary.h"
#include "run/checkpoint.h"

// RUN/vocabulary.txt: which word each row of the embedding is, one a line. Checkpoints hold its checksum.
namespace dgc {

inline constexpr const char* kVocabularyFile = "vocabulary.txt";

// A key of Manifest::values: vocabulary_xxh64() of the run that saved it.
inline constexpr const char* kVocabulary = "vocabulary_xxh64";

std::string vocabulary_xxh64(const Vocabulary&);

// Both throw UserError: for a file that cannot be written or read, or is no vocabulary.
void save_vocabulary(const std::filesystem::path& run, const Vocabulary&);
Vocabulary run_vocabulary(const std::filesystem::path& run);

// Throws UserError that names the first word that differs, where the run has a vocabulary already, or when that cannot
// be read.
void require_run_vocabulary(const std::filesystem::path& run, const Vocabulary&);

// Throws UserError unless the checkpoint was made with these words.
void require_same_vocabulary(const Checkpoint&, const Vocabulary&);

}  // namespace dgc
