#include "data/images/idx.h"

#include "data/images/open_images.h"
#include "tests/data/fixtures.h"

namespace dgc {
namespace {

const std::string kFix = "run data/mnist";

// Two images of 2 x 3 pixels with labels 7 and 1.
struct Files {
  TempFolder folder;
  Bytes images = idx_bytes({0x803, 2, 2, 3}, counting(12));
  Bytes labels = idx_bytes({0x801, 2}, {7, 1});

  void write(const std::string& prefix = "train", const std::string& suffix = "") const {
    folder.write(prefix + "-images-idx3-ubyte" + suffix, suffix.empty() ? images : gzip(images));
    folder.write(prefix + "-labels-idx1-ubyte" + suffix, suffix.empty() ? labels : gzip(labels));
  }
  std::string error() const {
    return user_error([&] { read_idx(folder.path(), Split::train, kFix); });
  }
};

TEST_CASE("idx: images and labels, plain and gzipped, of both splits") {
  const std::string suffix = GENERATE(std::string(), std::string(".gz"));
  const Split split = GENERATE(Split::train, Split::test);
  Files files;
  files.write(split == Split::train ? "train" : "t10k", suffix);
  const ImageTable table = read_idx(files.folder.path(), split, kFix);
  CHECK(table.shape == ImageShape{2, 3, 1});
  CHECK(table.classes == 10);
  CHECK(table.pixels == counting(12));
  CHECK(table.labels == Bytes{7, 1});
}

TEST_CASE("idx: a missing folder or file says how to get it") {
  Files files;
  CHECK_THAT(user_error([&] { read_idx(files.folder.path() + "/none", Split::train, kFix); }),
             Catch::Contains("/none: there is no such folder; run data/mnist"));
  CHECK_THAT(files.error(), Catch::Contains("train-images-idx3-ubyte: there is no such file"));
  files.write();
  std::filesystem::remove(files.folder.path() + "/train-labels-idx1-ubyte");
  CHECK_THAT(files.error(), Catch::Contains("train-labels-idx1-ubyte: there is no such file") && Catch::Contains(kFix));
}

TEST_CASE("idx: a damaged file is named with what is wrong") {
  Files files;
  std::string what;
  SECTION("truncated") {
    files.images.pop_back();
    what = "train-images-idx3-ubyte: truncated: its header promises 12 bytes of data, it has 11";
  }
  SECTION("too long") {
    files.labels.push_back(0);
    what = "train-labels-idx1-ubyte: longer than the 2 bytes its header promises";
  }
  SECTION("more than any memory") {
    files.images = idx_bytes({0x803, 0x7fffffff, 4096, 4096}, {});
    what =
        "train-images-idx3-ubyte: its header promises 36028797002186752 bytes of data, which are more than the 16 GiB";
  }
  SECTION("empty") {
    files.images.clear();
    what = "train-images-idx3-ubyte: truncated inside its header";
  }
  SECTION("ends inside the header") {
    files.images.resize(15);
    what = "train-images-idx3-ubyte: truncated inside its header";
  }
  SECTION("labels where images belong") {
    files.images = files.labels;
    what = "train-images-idx3-ubyte: not an idx file of bytes in 3 dimensions: it begins with 0x00000801";
  }
  SECTION("no images") {
    files.images = idx_bytes({0x803, 0, 2, 3}, {});
    what = "promises 0 items";
  }
  SECTION("absurd sizes do not allocate") {
    files.images = idx_bytes({0x803, 1024, 4096, 4096}, counting(12));
    what = "it has 12";
  }
  SECTION("absurd sides") {
    files.images = idx_bytes({0x803, 2, 0xffffffff, 3}, counting(12));
    what = "images of 4294967295 x 3 pixels";
  }
  SECTION("counts differ") {
    files.labels = idx_bytes({0x801, 3}, {7, 1, 2});
    what = "has 2 images, but";
  }
  SECTION("label out of range") {
    files.labels = idx_bytes({0x801, 2}, {7, 10});
    what = "train-labels-idx1-ubyte: label 10 of image 1 is not in 0 ... 9";
  }
  files.write();
  CHECK_THAT(files.error(), Catch::Contains(what));
}

TEST_CASE("idx: a damaged gzip file is named") {
  Files files;
  files.write();
  std::filesystem::remove(files.folder.path() + "/train-images-idx3-ubyte");
  Bytes packed = gzip(files.images);
  std::string what;
  SECTION("truncated") {
    packed.resize(packed.size() - 6);
    what = "truncated";
  }
  SECTION("wrong checksum") {
    packed[packed.size() - 8] ^= 1;
    what = "corrupt";
  }
  SECTION("corrupt data") {
    packed[10] = 0xff;
    what = "corrupt";
  }
  files.folder.write("train-images-idx3-ubyte.gz", packed);
  CHECK_THAT(files.error(), Catch::Contains("train-images-idx3-ubyte.gz: the gzip file is " + what));
}

TEST_CASE("idx: a folder in place of a file is an error") {
  Files files;
  files.write();
  std::filesystem::remove(files.folder.path() + "/train-images-idx3-ubyte");
  std::filesystem::create_directory(files.folder.path() + "/train-images-idx3-ubyte");
  CHECK_THAT(files.error(), Catch::Contains("train-images-idx3-ubyte: cannot"));
}

TEST_CASE("mnist and fashion_mnist normalise with means and deviations of their own") {
  Files files;
  files.write();
  const auto check = [&](const ImageDataset& dataset, double mean, double deviation) {
    CHECK(dataset.size() == 2);
    std::vector<float> out(6);
    CHECK(dataset.read(1, nullptr, out.data()) == 1);
    for (int i = 0; i < 6; ++i) {
      CHECK(out[static_cast<size_t>(i)] == Approx(((6 + i) / 255.0 - mean) / deviation).margin(1e-6));
    }
  };
  check(*open_mnist(files.folder.path(), {}, Split::train), 0.1307, 0.3081);
  check(*open_fashion_mnist(files.folder.path(), {}, Split::train), 0.2860, 0.3530);
}

TEST_CASE("chosen classes of which there is no image are refused") {
  Files files;
  files.write();
  CHECK(user_error([&] {
          open_mnist(files.folder.path(), {.only_classes = {3, 4}}, Split::train);
        }) == "data.only_classes: the set has no image of these classes");
}

}  // namespace
}  // namespace dgc
