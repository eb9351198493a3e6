#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "config/options.h"
#include "data/dataset.h"
#include "data/text/vocabulary.h"

// From a config to the data it names.
namespace dgc {

// The sets of one run, owned by someone else.
struct DataView {
  const Dataset& train;
  const Dataset& test;
  const Dataset* valid = nullptr;          // of text: what decides on the learning rate
  const Vocabulary* vocabulary = nullptr;  // of text
};

struct Datasets {
  std::optional<Vocabulary> vocabulary;  // of text
  std::unique_ptr<Dataset> train, test;
  std::unique_ptr<Dataset> valid;  // of text

  DataView view() const { return {*train, *test, valid.get(), vocabulary ? &*vocabulary : nullptr}; }
};

// Throws UserError that names the file and what is wrong with it, or in what the sets differ that a model needs alike.
Datasets make_datasets(const Config&);

// To evaluate a run: no training set, and the run's own vocabulary.
Datasets make_test_datasets(const Config&, const std::filesystem::path& run);

// Throws UserError that names the key when a model of the training set could not read another one: each of the traits
// must be the same.
void require_alike(const Dataset& train, const Dataset& other, const char* name, const char* key);

// Warns of all that the sets remark.
void tell_remarks(const Datasets&);

// With model.vocabulary as the data has it, where the config leaves that open.
Config with_vocabulary(Config, const Datasets&);

}  // namespace dgc
