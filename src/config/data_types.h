#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/options.h"
#include "data/images/image_dataset.h"
#include "data/images/image_file.h"
#include "data/images/memory_images.h"
#include "data/speech/utterances.h"

namespace dgc {

struct Origin;

// A kind of data set that data.type can name. keys_data.cpp and keys_speech.cpp derive from these fields which keys it
// has.
struct DataType {
  std::string name;
  DataKind kind = DataKind::images;
  bool is_folder = false;  // whether data.path names its folder

  // Fields of images:
  std::optional<SmallImages> small{};  // squares that can be padded and cropped; some of their classes can be chosen
  bool any_size = false;               // images differ in size: a box is cut out of each and resized
  Shape (*sample)(const ImageOptions&) = nullptr;         // unless small
  int64_t (*classes)(const ImageOptions&) = nullptr;      // unless small; null: only the data can tell
  int64_t (*test_images)(const ImageOptions&) = nullptr;  // in the test set; null: only the data can tell
  std::unique_ptr<ImageDataset> (*open)(const std::string& path, const ImageOptions&, Split) = nullptr;
  std::unique_ptr<ImageFileReader> (*reader)(const ImageOptions&) = nullptr;  // null: no file looks like these images

  // Fields of speech:
  bool has_parts = false;  // whether there are data.train and data.test
  std::vector<Utterance> (*list)(const std::string& path, const std::vector<std::string>& parts, Split) = nullptr;
};
const std::vector<DataType>& data_types();
const DataType& data_type(const DataOptions&);
// Throws UserError where keys contradict each other.
void check_data(const DataOptions&, const Origin&);
// Throws UserError where data.train or data.test of speech has a part twice.
void require_parts_once(const DataOptions&, const Origin&);
// Dataset::sample() and Dataset::classes() of a set of images that is not opened; no classes where only the data tell.
Shape image_sample(const DataOptions&);
std::optional<int64_t> image_classes(const DataOptions&);
// Whether evaluations during training are on samples that are neither trained on nor tested with: always those of text.
bool has_validation_set(const DataOptions&);

}  // namespace dgc
