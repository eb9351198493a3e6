#include <algorithm>
#include <limits>

#include "config/data_types.h"
#include "tasks/make.h"
#include "tasks/task.h"

namespace dgc {
namespace {

class ImageScorer final : public Scorer {
 public:
  explicit ImageScorer(int64_t images) : images_(static_cast<double>(images)) {}

  void start() override { sums_ = {}; }
  void add(Backend&, const Batch&, ConstView, const LossStats& stats) override { sums_.add(stats); }
  Measures measures() const override {
    return {{&kTestLoss, sums_.loss / images_},
            {&kTestAccuracy, sums_.counts[kFirst] / images_},
            {&kTestTop5, sums_.counts[kTopFive] / images_}};
  }

 private:
  double images_;
  LossStats sums_;
};

class ImageTask final : public Task {
 public:
  const char* samples() const override { return "images"; }

  Datasets open(const Config& config) const override {
    auto train = make_images(config, Split::train);  // the first to complain
    return alike(std::move(train), make_images(config, Split::test));
  }
  Datasets open_to_evaluate(const Config& config, const std::filesystem::path&) const override {
    Datasets sets;
    sets.test = make_images(config, Split::test);
    return sets;
  }

  Shape sample(const Config& config, Split) const override { return data_type(config.data).sample(config.data.images); }
  int64_t most_rows(const Config& config, Split split) const override {
    if (split == Split::train) return config.training.batch_per_worker;
    // The config only tells an upper limit for the number of images.
    int64_t images = config.data.test_limit.value_or(std::numeric_limits<int64_t>::max());
    if (config.data.type == "synthetic") images = std::min(images, config.data.images.synthetic.test_samples);
    return std::min(config.training.eval_batch, images);
  }

  std::unique_ptr<Scorer> make_scorer(const Dataset& data, const Network&, Split,
                                      const ScoringOptions&) const override {
    return std::make_unique<ImageScorer>(data.size());
  }
  Compared compared() const override { return {{&kTestAccuracy}, &kTestAccuracy, &kTestAccuracy}; }
};

}  // namespace

const Task& image_task() {
  static const ImageTask task;
  return task;
}

}  // namespace dgc
