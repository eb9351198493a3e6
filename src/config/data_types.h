#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/options.h"
#include "data/images/image_dataset.h"
#include "data/speech/utterances.h"

namespace dgc {

// What data.type can name. keys_data.cpp and keys_speech.cpp have the keys, which go by what is said here.
struct DataType {
  std::string name;
  DataKind kind = DataKind::images;
  bool is_folder = false;  // data.path

  // Of images:
  int64_t own_side = 0;                               // of small ones that are padded and cropped
  bool any_size = false;                              // a box is cut out of each and resized
  Shape (*sample)(const ImageOptions&) = nullptr;     // Dataset::sample(), without opening it
  int64_t (*classes)(const ImageOptions&) = nullptr;  // null: only the data can tell
  std::unique_ptr<ImageDataset> (*open)(const std::string& path, const ImageOptions&, Split) = nullptr;

  // Of speech:
  bool has_parts = false;  // data.train and data.test
  std::vector<Utterance> (*list)(const std::string& path, const std::vector<std::string>& parts, Split) = nullptr;
};
const std::vector<DataType>& data_types();
const DataType& data_type(const DataOptions&);

}  // namespace dgc
