#include "data/batches.h"

#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "data/images/memory_images.h"
#include "tests/data/fixtures.h"

namespace dgc {
namespace {

bool same(const Batch& a, const Batch& b) {
  return a.step == b.step && a.worker == b.worker && a.values == b.values && a.labels == b.labels;
}

// 50 random 4 x 4 images, augmented.
MemoryImages small_images() {
  const Philox rng(5, 0);
  ImageTable table{{4, 4, 1}, 10, Bytes(50 * 16), Bytes(50)};
  for (size_t i = 0; i < table.pixels.size(); ++i) table.pixels[i] = static_cast<uint8_t>(rng.bits(i));
  for (size_t i = 0; i < table.labels.size(); ++i) table.labels[i] = static_cast<uint8_t>(i % 10);
  return MemoryImages(std::move(table), {.pad_crop = 1, .flip = true}, Normalizer({{0.f}, {1.f}}), 0);
}

constexpr WorkerBatches kTwoOfFour = {
    .sampling = {.samples = 50, .workers = 4, .batch_per_worker = 3, .seed = 1}, .first_worker = 1, .local_workers = 2};

std::vector<Batch> take(const Dataset& dataset, const WorkerBatches& workers, const PrefetchOptions& options,
                        int count) {
  const auto batches = dataset.training_batches(workers, options);
  std::vector<Batch> out;
  for (int i = 0; i < count; ++i) out.push_back(*batches->next());
  return out;
}

TEST_CASE("batches: what sampler and dataset say, in order of step and worker, at any number of threads") {
  const MemoryImages images = small_images();
  const int threads = GENERATE(1, 2, 5), ahead = GENERATE(1, 3, 16);
  const Sampler sampler(kTwoOfFour.sampling);
  const auto batches = images.training_batches(kTwoOfFour, {threads, ahead});
  REQUIRE(sampler.steps_per_epoch() == 4);
  std::vector<int32_t> samples;
  std::vector<float> image(16);
  for (int i = 0; i < 30; ++i) {  // nearly four epochs
    const Batch& batch = *batches->next();
    REQUIRE(batch.step == i / 2);
    REQUIRE(batch.worker == 1 + i % 2);
    sampler.indices(batch.step, batch.worker, samples);
    REQUIRE(batch.labels.size() == 3);
    REQUIRE(batch.values.size() == 3 * 16);
    for (size_t s = 0; s < samples.size(); ++s) {
      const Draw draw(1, batch.step / 4, samples[s]);
      CHECK(batch.labels[s] == images.read(samples[s], &draw, image.data()));
      CHECK(std::equal(image.begin(), image.end(), batch.values.begin() + static_cast<int64_t>(s) * 16));
    }
  }
}

TEST_CASE("batches: starting at a step gives what would have come there") {
  const MemoryImages images = small_images();
  const std::vector<Batch> all = take(images, kTwoOfFour, {2, 4}, 40);
  for (const int64_t start : {0, 1, 3, 4, 5, 13}) {
    WorkerBatches later = kTwoOfFour;
    later.start_step = start;
    const std::vector<Batch> rest = take(images, later, {3, 2}, 10);
    for (size_t i = 0; i < rest.size(); ++i) CHECK(same(rest[i], all[static_cast<size_t>(start) * 2 + i]));
  }
}

TEST_CASE("batches: ranks of one worker each get what one rank with all workers gets") {
  const MemoryImages images = small_images();
  WorkerBatches workers = kTwoOfFour;
  workers.first_worker = 0;
  workers.local_workers = 4;
  const std::vector<Batch> all = take(images, workers, {2, 4}, 20);
  workers.local_workers = 1;
  for (int worker = 0; worker < 4; ++worker) {
    workers.first_worker = worker;
    const std::vector<Batch> own = take(images, workers, {2, 4}, 5);
    for (size_t step = 0; step < 5; ++step) CHECK(same(own[step], all[step * 4 + static_cast<size_t>(worker)]));
  }
}

TEST_CASE("batches: buffers are used again") {
  const MemoryImages images = small_images();
  const auto batches = images.training_batches(kTwoOfFour, {2, 3});
  std::set<const float*> memory;
  for (int i = 0; i < 50; ++i) memory.insert(batches->next()->values.data());
  CHECK(memory.size() == 4);  // three ahead and the caller's
}

TEST_CASE("batches: an epoch's augmentation differs from the next one's") {
  const MemoryImages images = small_images();
  const auto batches = images.training_batches({.sampling = {50, 1, 50, 1}}, {});
  const auto sums = [&] {  // per label and sample, independent of the order
    std::multiset<float> out;
    const Batch& batch = *batches->next();
    for (size_t i = 0; i < 50; ++i) {
      float sum = 0;
      for (size_t p = 0; p < 16; ++p) sum += batch.values[i * 16 + p];
      out.insert(sum);
    }
    return out;
  };
  const auto first = sums();
  CHECK(first != sums());
}

// Fails at sample `bad`; slow enough that a destructor that waited for everything would be noticed by the test's limit.
class Faulty final : public ImageDataset {
 public:
  explicit Faulty(int64_t bad, int milliseconds = 0) : bad_(bad), milliseconds_(milliseconds) {}
  int64_t size() const override { return 1'000'000; }
  ImageShape shape() const override { return {1, 1, 1}; }
  int64_t classes() const override { return 1; }
  int32_t read(int64_t i, const Draw*, float* out) const override {
    if (i == bad_) throw_user_error("x.jpg: corrupt");
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds_));
    ++reads;
    *out = static_cast<float>(i);
    return 0;
  }
  mutable std::atomic<int> reads{0};

 private:
  int64_t bad_;
  int milliseconds_;
};

TEST_CASE("batches: an error reaches next() at its batch, and stays") {
  const Faulty dataset(17);
  const int threads = GENERATE(1, 4);
  const auto batches = dataset.evaluation_batches({.rows = 5}, {threads, 8});
  for (int i = 0; i < 3; ++i) {
    const Batch* batch = batches->next();
    REQUIRE(batch != nullptr);
    CHECK(batch->values[0] == static_cast<float>(5 * i));
  }
  for (int i = 0; i < 3; ++i) CHECK_THROWS_WITH(batches->next(), "x.jpg: corrupt");
}

TEST_CASE("batches: an error is known before next() comes to its batch") {
  const Faulty dataset(17);  // in batch 3
  const auto batches = dataset.evaluation_batches({.rows = 5}, {GENERATE(1, 4), 4});
  const auto known = [&](int64_t count) {
    for (int tries = 0; tries < 10'000; ++tries) {  // until a thread has come so far
      if (batches->error_within(count)) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  };
  CHECK_FALSE(batches->error_within(3));
  REQUIRE(batches->next() != nullptr);
  CHECK(known(3));
  CHECK_FALSE(batches->error_within(2));
  REQUIRE(batches->next() != nullptr);
  CHECK(known(2));
  CHECK_FALSE(batches->error_within(1));
  REQUIRE(batches->next() != nullptr);
  CHECK(known(1));
  CHECK_FALSE(batches->error_within(0));
}

TEST_CASE("batches: the destructor does not wait for whole batches") {
  const Faulty dataset(-1, 1);
  dataset.evaluation_batches({.rows = 500'000}, {2, 2}).reset();
  CHECK(dataset.reads < 100'000);
}

TEST_CASE("batches: destroyed at once, with batches waiting, and in the middle") {
  const MemoryImages images = small_images();
  for (int taken = 0; taken < 20; ++taken) {
    const auto batches = images.training_batches(kTwoOfFour, {3, 4});
    for (int i = 0; i < taken; ++i) batches->next();
  }
}

TEST_CASE("evaluation: every sample once, in order, the last batch smaller, then null") {
  const MemoryImages images = small_images();
  const int threads = GENERATE(1, 3);
  const int batch_size = GENERATE(1, 7, 49, 50, 51);
  const auto batches = images.evaluation_batches({.rows = batch_size}, {threads, 4});
  int64_t seen = 0;
  std::vector<float> image(16);
  for (int64_t number = 0; const Batch* batch = batches->next(); ++number) {
    CHECK(batch->step == number);
    CHECK(std::ssize(batch->labels) == std::min<int64_t>(batch_size, 50 - seen));
    CHECK(batch->values.size() == batch->labels.size() * 16);
    for (size_t i = 0; i < batch->labels.size(); ++i, ++seen) {
      CHECK(batch->labels[i] == images.read(seen, nullptr, image.data()));
      CHECK(std::equal(image.begin(), image.end(), batch->values.begin() + static_cast<int64_t>(i) * 16));
    }
  }
  CHECK(seen == 50);
  CHECK(batches->next() == nullptr);
}

}  // namespace
}  // namespace dgc
