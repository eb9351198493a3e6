#include "config/data_types.h"

#include <algorithm>
#include <filesystem>

#include "config/check.h"
#include "config/table.h"
#include "data/images/cifar10.h"
#include "data/images/idx.h"
#include "data/images/open_images.h"
#include "data/speech/open_speech.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

void check_images(const DataOptions& data, const Origin& origin) {
  const AugmentOptions& a = data.images.augment;
  if (a.min_scale > a.max_scale) origin.refuse("data.augment.min_scale", "more than data.augment.max_scale");
  if (a.min_ratio > a.max_ratio) origin.refuse("data.augment.min_ratio", "more than data.augment.max_ratio");
  std::vector<int64_t> classes = data.images.only_classes;
  std::ranges::sort(classes);
  if (const auto twice = std::ranges::adjacent_find(classes); twice != classes.end()) {
    origin.refuse("data.only_classes", fmt::format("{} is there twice", *twice));
  }
  if (classes.size() == 1) {
    origin.refuse("data.only_classes", "one class has no other to be told from; give at least two, or []");
  }
  const auto& small = data_type(data).small;
  if (!small) return;
  if (!classes.empty() && classes.back() >= small->classes) {
    origin.refuse("data.only_classes", fmt::format("{} is no class of {}, which has 0 to {}", classes.back(), data.type,
                                                   small->classes - 1));
  }
  if (data.images.pad_to != 0 && data.images.pad_to < small->side) {
    origin.refuse("data.pad_to", fmt::format("{} is less than the images' own {}", data.images.pad_to, small->side));
  }
}

void check_text_data(const DataOptions& data, const Origin& origin) {
  if (!data.text.vocabulary.empty() && data.text.vocabulary_size) {
    origin.refuse("data.vocabulary_size", "data.vocabulary says which words there are; leave one of the two out");
  }
}

// Of parts that are folders one may lie in another.
void check_parts(const std::string& key, const DataOptions& data, const std::vector<std::string>& parts,
                 const Origin& origin) {
  std::vector<std::pair<std::string, std::string>> places;  // each ends in a slash; beside it the part as written
  for (const std::string& part : parts) {
    std::error_code error;
    const auto place = std::filesystem::absolute(std::filesystem::path(data.path) / part / "", error);
    places.emplace_back(place.lexically_normal().string(), part);
  }
  std::ranges::sort(places);
  const auto twice = std::ranges::adjacent_find(
      places, [](const auto& outer, const auto& inner) { return inner.first.starts_with(outer.first); });
  if (twice == places.end()) return;
  origin.refuse(key, fmt::format("\"{}\" would be read twice, as \"{}\" is there too; leave one of the two out",
                                 std::next(twice)->second, twice->second));
}

void check_recordings(const DataOptions& data, const Origin& origin) {
  const SpeechAugmentOptions& a = data.speech.augment;
  if (a.min_noise_db > a.max_noise_db) {
    origin.refuse("data.augment.min_noise_db", "more than data.augment.max_noise_db");
  }
  const MaskOptions& mask = a.mask;
  if ((mask.time_masks == 0) != (mask.time_frames == 0)) {
    origin.refuse("data.augment.mask", "time_masks and time_frames do nothing without each other; set both, or none");
  }
  if ((mask.feature_masks == 0) != (mask.feature_width == 0)) {
    origin.refuse("data.augment.mask",
                  "feature_masks and feature_width do nothing without each other; set both, or none");
  }
  if (a.min_tempo > a.max_tempo) origin.refuse("data.augment.min_tempo", "more than data.augment.max_tempo");
  if (data.speech.audio.max_seconds * 1000 < data.speech.features.window_ms) {
    origin.refuse("data.max_seconds", "shorter than one frame of data.features.window_ms");
  }
}

}  // namespace

const std::vector<DataType>& data_types() {
  using Options = ImageOptions;
  static const std::vector<DataType> all = {
      {.name = "cifar10",
       .is_folder = true,
       .small = kCifar10Images,
       .open = open_cifar10,
       .reader = read_like_cifar10},
      {.name = "mnist", .is_folder = true, .small = kMnistImages, .open = open_mnist, .reader = read_like_mnist},
      {.name = "fashion_mnist",
       .is_folder = true,
       .small = kMnistImages,
       .open = open_fashion_mnist,
       .reader = read_like_fashion_mnist},
      {.name = "image_folder",
       .is_folder = true,
       .any_size = true,
       .sample =
           [](const Options& o) {
             return Shape{o.image_size, o.image_size, 3};
           },
       .open = open_image_folder,
       .reader = read_like_image_folder},
      {.name = "synthetic",
       .sample =
           [](const Options& o) {
             return Shape{o.synthetic.height, o.synthetic.width, o.synthetic.channels};
           },
       .classes = [](const Options& o) { return o.synthetic.classes; },
       .test_images = [](const Options& o) { return o.synthetic.test_samples; },
       .open = open_synthetic},
      {.name = "text", .kind = DataKind::text},
      {.name = "an4", .kind = DataKind::speech, .is_folder = true, .list = list_an4},
      {.name = "librispeech", .kind = DataKind::speech, .is_folder = true, .has_parts = true, .list = list_librispeech},
      {.name = "speech_manifest",
       .kind = DataKind::speech,
       .is_folder = true,
       .has_parts = true,
       .list = list_manifests}};
  return all;
}

const DataType& data_type(const DataOptions& data) { return row_named(data_types(), data.type); }

void require_parts_once(const DataOptions& data, const Origin& origin) {
  check_parts("data.train", data, data.speech.train, origin);
  check_parts("data.test", data, data.speech.test, origin);
}

void check_data(const DataOptions& data, const Origin& origin) {
  switch (data_type(data).kind) {
    case DataKind::images:
      return check_images(data, origin);
    case DataKind::text:
      return check_text_data(data, origin);
    case DataKind::speech:
      return check_recordings(data, origin);
  }
}

Shape image_sample(const DataOptions& data) {
  const DataType& type = data_type(data);
  if (!type.small) return type.sample(data.images);
  const int64_t side = std::max(type.small->side, data.images.pad_to);
  return {side, side, type.small->channels};
}

std::optional<int64_t> image_classes(const DataOptions& data) {
  const DataType& type = data_type(data);
  if (!data.images.only_classes.empty()) return std::ssize(data.images.only_classes);
  if (type.small) return type.small->classes;
  if (type.classes) return type.classes(data.images);
  return std::nullopt;
}

bool has_validation_set(const DataOptions& data) {
  return data_type(data).kind == DataKind::text || data.validation_split > 0;
}

}  // namespace dgc
