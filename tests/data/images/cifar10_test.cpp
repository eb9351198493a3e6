#include "data/images/cifar10.h"

#include "data/images/open_images.h"
#include "tests/data/fixtures.h"

namespace dgc {
namespace {

constexpr size_t kRecord = 3073;

// One record: red pixels count up from `first`, green ones are 100, blue ones 200.
Bytes record(uint8_t label, int first) {
  Bytes out = {label};
  const Bytes red = counting(1024, first);
  out.insert(out.end(), red.begin(), red.end());
  out.insert(out.end(), 1024, 100);
  out.insert(out.end(), 1024, 200);
  return out;
}

void write_train(const TempFolder& folder) {
  for (int i = 1; i <= 5; ++i) {
    folder.write("data_batch_" + std::to_string(i) + ".bin", record(static_cast<uint8_t>(i), i));
  }
}

TEST_CASE("cifar10: five files in order, planes turned into pixels") {
  TempFolder folder;
  write_train(folder);
  const ImageTable table = read_cifar10(folder.path(), Split::train, "");
  CHECK(table.shape == ImageShape{32, 32, 3});
  CHECK(table.labels == Bytes{1, 2, 3, 4, 5});
  REQUIRE(table.pixels.size() == 5 * 3072);
  for (size_t image = 0; image < 5; ++image) {
    for (const size_t pixel : {size_t{0}, size_t{1}, size_t{31}, size_t{32}, size_t{1023}}) {
      const uint8_t* p = table.pixels.data() + image * 3072 + pixel * 3;
      CHECK(p[0] == static_cast<uint8_t>(image + 1 + pixel));
      CHECK(p[1] == 100);
      CHECK(p[2] == 200);
    }
  }
}

TEST_CASE("cifar10: several records in one file, and the test split") {
  TempFolder folder;
  Bytes both = record(9, 0);
  const Bytes second = record(0, 7);
  both.insert(both.end(), second.begin(), second.end());
  folder.write("test_batch.bin", both);
  const ImageTable table = read_cifar10(folder.path(), Split::test, "");
  CHECK(table.labels == Bytes{9, 0});
  CHECK(table.pixels[3072] == 7);
}

TEST_CASE("cifar10: what is wrong is named") {
  TempFolder folder;
  write_train(folder);
  const auto error = [&] { return user_error([&] { read_cifar10(folder.path(), Split::train, "run data/cifar10"); }); };
  SECTION("missing") {
    std::filesystem::remove(folder.path() + "/data_batch_3.bin");
    CHECK_THAT(error(), Catch::Contains("data_batch_3.bin: there is no such file; run data/cifar10"));
  }
  SECTION("truncated") {
    Bytes bytes = record(1, 0);
    bytes.pop_back();
    folder.write("data_batch_2.bin", bytes);
    CHECK_THAT(error(), Catch::Contains("data_batch_2.bin: 3072 bytes are not a positive multiple"));
  }
  SECTION("empty") {
    folder.write("data_batch_2.bin", {});
    CHECK_THAT(error(), Catch::Contains("data_batch_2.bin: 0 bytes"));
  }
  SECTION("label") {
    folder.write("data_batch_5.bin", record(10, 0));
    CHECK_THAT(error(), Catch::Contains("data_batch_5.bin: label 10 of image 0"));
  }
  SECTION("a folder") {
    std::filesystem::remove(folder.path() + "/data_batch_3.bin");
    std::filesystem::create_directory(folder.path() + "/data_batch_3.bin");
    CHECK_THAT(error(), Catch::Contains("data_batch_3.bin: cannot read it"));
  }
}

TEST_CASE("cifar10's mean and deviation, per channel, and pad_to 36 puts zeros around") {
  TempFolder folder;
  write_train(folder);
  ImageOptions options;
  options.pad_to = 36;
  const auto dataset = open_cifar10(folder.path(), options, Split::train);
  REQUIRE(dataset->shape() == ImageShape{36, 36, 3});
  std::vector<float> out(static_cast<size_t>(dataset->shape().numel()));
  CHECK(dataset->read(0, nullptr, out.data()) == 1);
  const float* corner = out.data();
  const float* first = out.data() + (2 * 36 + 2) * 3;
  CHECK(corner[0] == Approx((0 - 0.4914) / 0.2470));
  CHECK(first[0] == Approx((1 / 255.0 - 0.4914) / 0.2470));
  CHECK(first[1] == Approx((100 / 255.0 - 0.4822) / 0.2435));
  CHECK(first[2] == Approx((200 / 255.0 - 0.4465) / 0.2616));
}

}  // namespace
}  // namespace dgc
