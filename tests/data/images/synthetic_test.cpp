#include "data/images/synthetic.h"

#include <cmath>

#include "data/images/open_images.h"
#include "tests/data/fixtures.h"

namespace dgc {
namespace {

std::vector<float> read(const ImageDataset& dataset, int64_t i) {
  std::vector<float> out(static_cast<size_t>(dataset.shape().numel()));
  CHECK(dataset.read(i, nullptr, out.data()) == i % dataset.classes());
  return out;
}

TEST_CASE("synthetic: sizes, and the same images each time") {
  ImageOptions options;
  options.synthetic = {.train_samples = 100, .test_samples = 40, .height = 7, .width = 9, .channels = 2, .classes = 3};
  const auto a = open_synthetic("", options, Split::train), b = open_synthetic("", options, Split::train);
  const auto test = open_synthetic("", options, Split::test);
  CHECK(a->size() == 100);
  CHECK(test->size() == 40);
  CHECK(a->shape() == ImageShape{7, 9, 2});
  CHECK(read(*a, 50) == read(*b, 50));
  CHECK(read(*a, 50) != read(*a, 53));
  CHECK(read(*a, 3) != read(*test, 3));
  options.synthetic.seed = 2;
  CHECK(read(*a, 50) != read(*open_synthetic("", options, Split::train), 50));
}

TEST_CASE("synthetic: the nearest mean of the training images tells the test images' classes") {
  const SyntheticOptions options{.train_samples = 200, .test_samples = 100, .height = 8, .width = 8};
  const SyntheticImages train(options, Split::train), test(options, Split::test);
  std::vector<std::vector<double>> means(10, std::vector<double>(192));
  for (int64_t i = 0; i < 200; ++i) {
    const std::vector<float> image = read(train, i);
    for (size_t p = 0; p < 192; ++p) means[static_cast<size_t>(i % 10)][p] += static_cast<double>(image[p]) / 20;
  }
  int right = 0;
  for (int64_t i = 0; i < 100; ++i) {
    const std::vector<float> image = read(test, i);
    int64_t best = -1;
    double least = 1e30;
    for (int64_t k = 0; k < 10; ++k) {
      double distance = 0;
      for (size_t p = 0; p < 192; ++p) distance += std::pow(means[static_cast<size_t>(k)][p] - image[p], 2);
      if (distance < least) {
        least = distance;
        best = k;
      }
    }
    right += best == i % 10;
  }
  CHECK(right >= 95);
}

TEST_CASE("synthetic: sizes that together are too large") {
  CHECK_THAT(user_error([] { SyntheticImages({.height = 4096, .width = 4096, .channels = 1024}, Split::train); }),
             Catch::StartsWith("data.height, data.width and data.channels: 4096x4096x1024 are more than"));
  CHECK_THAT(user_error([] { SyntheticImages({.channels = 1024, .classes = 1000000}, Split::train); }),
             Catch::StartsWith("data.classes and data.channels: patterns for 1000000 classes"));
}

}  // namespace
}  // namespace dgc
