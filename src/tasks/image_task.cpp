#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "config/data_types.h"
#include "run/class_names.h"
#include "tasks/make.h"
#include "tasks/task.h"
#include "tensor/counted.h"

namespace dgc {
namespace {

class ImageScorer final : public Scorer {
 public:
  ImageScorer(int64_t images, Split split) : images_(static_cast<double>(images)), split_(split) {}

  Measures measures(const Counts& sums, const std::vector<std::string>&) const override {
    const bool valid = split_ == Split::valid;
    return {{valid ? &kValidLoss : &kTestLoss, sums[0] / images_},
            {valid ? &kValidAccuracy : &kTestAccuracy, sums[1 + kFirst] / images_},
            {valid ? &kValidTop5 : &kTestTop5, sums[1 + kTopFive] / images_}};
  }

 private:
  double images_;
  Split split_;
};

// So that an output of the run's network means what it meant in training, whatever other classes there are in the data.
Config with_classes_of(const std::filesystem::path& run, Config config) {
  config.data.images.class_names = run_class_names(run);
  return config;
}

class ImageTask : public Task {
 public:
  const char* samples() const override { return "images"; }
  std::string size_text(const Datasets& sets) const override {
    return "images of " + counted(sets.train->classes(), "class", "classes");
  }

  Datasets open(const Config& config) const override {
    auto train = make_images(config, Split::train);  // the first to complain
    return alike(std::move(train), make_images(config, Split::test));
  }
  Datasets open_to_evaluate(const Config& config, const std::filesystem::path& run) const override {
    Datasets sets;
    sets.test = make_images(with_classes_of(run, config), Split::test);
    return sets;
  }

  std::vector<std::string> remarks(const Config& config, const Network&, const Datasets& sets) const override {
    const Shape own = sets.train->sample(), usual = image_sample(config.data);
    if (own == usual) return {};
    return {fmt::format(
        "the images are {} x {}, and those of data.type \"{}\" are {} x {} as a rule: dgc predict and dgc plan "
        "take these to be so too; \"image_folder\" reads images of any size",
        own[0], own[1], data_type(config.data).name, usual[0], usual[1])};
  }

  Shape sample(const Config& config, Split) const override { return image_sample(config.data); }
  int64_t most_rows(const Config& config, Split split) const override {
    if (split == Split::train) return config.training.micro_batch();
    if (split == Split::valid) return config.training.eval_batch;
    // The config only tells an upper limit for the number of images.
    int64_t images = config.data.test_limit.value_or(std::numeric_limits<int64_t>::max());
    if (const auto known = data_type(config.data).test_images) images = std::min(images, known(config.data.images));
    return std::min(config.training.eval_batch, images);
  }

  std::unique_ptr<Scorer> make_scorer(const Dataset& data, const Network&, Split split,
                                      const ScoringOptions&) const override {
    return std::make_unique<ImageScorer>(data.size(), split);
  }
  Compared compared() const override { return {{&kTestAccuracy}, &kTestAccuracy, &kTestAccuracy}; }
};

class ValidatedImageTask final : public ImageTask {
 public:
  Datasets open(const Config& config) const override {
    ValidatedImages images = make_validated_images(config);
    Datasets sets = alike(std::move(images.train), make_images(config, Split::test));
    sets.valid = std::move(images.valid);  // a part of what was read for training, so it need not be compared
    return sets;
  }
  Datasets open_to_evaluate(const Config& config, const std::filesystem::path& run) const override {
    Datasets sets = ImageTask::open_to_evaluate(config, run);
    sets.valid = make_validated_images(with_classes_of(run, config)).valid;
    return sets;
  }
  Compared compared() const override { return {{&kTestAccuracy, &kValidAccuracy}, &kValidAccuracy, &kTestAccuracy}; }
};

}  // namespace

const Task& image_task(const Config& config) {
  static const ImageTask plain;
  static const ValidatedImageTask validated;
  return has_validation_set(config.data) ? validated : plain;
}

}  // namespace dgc
