#include "data/images/image_folder.h"

#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "data/images/open_images.h"
#include "tests/data/images/images.h"

namespace dgc {
namespace {

// Two classes of solid colours; a stray file and a hidden folder that do not count.
struct Folder {
  struct Options {
    std::string path;
    int64_t image_size = 8;
    AugmentOptions augment{};
    std::vector<std::string> class_names{};
    bool holds_back = false;
  };
  TempFolder temp;
  Options options{.path = temp.path()};

  Folder() {
    temp.write("train/cat/b.png", png_bytes(solid(20, 10, 10, 20, 30), 20, 10));
    temp.write("train/cat/a.JPEG", rgb_jpeg(solid(16, 16, 40, 50, 60), 16, 16));
    temp.write("train/ant/z.jpg", rgb_jpeg(solid(9, 30, 70, 80, 90), 9, 30));
    temp.write("train/ant/notes.txt", {1, 2, 3});
    temp.write("train/.cache/x.jpg", {});
    temp.write("val/cat/q.png", png_bytes(solid(32, 24, 1, 2, 3), 32, 24));
  }

  // With pixels as they are in the file.
  std::unique_ptr<ImageDataset> open(Split split = Split::train) const {
    constexpr float kStep = 1.f / 255.f;
    const ImageOptions all{.augment = options.augment,
                           .image_size = options.image_size,
                           .class_names = options.class_names,
                           .holds_back = options.holds_back};
    return std::make_unique<ImageFolder>(options.path, split, all, Normalizer({{0.f, 0.f, 0.f}, {kStep, kStep, kStep}}),
                                         "set data.path");
  }
  std::string error(Split split = Split::train) const {
    return user_error([&] { open(split); });
  }
};

std::vector<float> read(const ImageDataset& dataset, int64_t i, const Draw* draw, int32_t label) {
  std::vector<float> out(static_cast<size_t>(dataset.shape().numel()));
  CHECK(dataset.read(i, draw, out.data()) == label);
  return out;
}

TEST_CASE("image folder: classes and files by name, and test labels are those of training") {
  Folder folder;
  const auto train = folder.open();
  CHECK(train->size() == 3);
  CHECK(train->classes() == 2);
  CHECK(train->shape() == ImageShape{8, 8, 3});
  CHECK(read(*train, 0, nullptr, 0)[0] == Approx(70).margin(2));
  CHECK(read(*train, 1, nullptr, 1)[0] == Approx(40).margin(2));
  CHECK(read(*train, 2, nullptr, 1)[0] == Approx(10).margin(1e-3));
  const auto test = folder.open(Split::test);
  CHECK(test->size() == 1);
  CHECK(test->classes() == 2);
  CHECK(read(*test, 0, nullptr, 1)[2] == Approx(3).margin(1e-3));
}

TEST_CASE("image folder: a solid image stays solid in training and evaluation") {
  Folder folder;
  const auto train = folder.open();
  for (int i = 0; i < 50; ++i) {
    const Draw draw(1, i, 2);
    for (const Draw* d : {static_cast<const Draw*>(nullptr), &draw}) {
      const std::vector<float> out = read(*train, 2, d, 1);
      for (size_t p = 0; p < out.size(); ++p) CHECK(out[p] == Approx(10 * (p % 3 + 1)).margin(1e-3));
    }
  }
}

TEST_CASE("image folder: evaluation cuts the centre out of the shorter side's 256/224") {
  // 7 pixels wanted: the shorter side becomes 8. The image is 16 x 8, so nothing is resized, and the centre is
  // (16 - 7) / 2 = 4 to the right and (8 - 7) / 2 = 0 down.
  Folder folder;
  Bytes pixels;
  for (int i = 0; i < 16 * 8; ++i) pixels.insert(pixels.end(), {static_cast<uint8_t>(i), 0, 0});
  folder.temp.write("train/ant/a.png", png_bytes(pixels, 16, 8));
  folder.options.image_size = 7;
  const std::vector<float> out = read(*folder.open(), 0, nullptr, 0);
  for (int y = 0; y < 7; ++y) {
    for (int x = 0; x < 7; ++x) CHECK(out[static_cast<size_t>((y * 7 + x) * 3)] == Approx(y * 16 + x + 4).margin(1e-3));
  }
}

TEST_CASE("image folder: a flip mirrors the crop, every second time") {
  Folder folder;
  Bytes pixels;
  for (int i = 0; i < 8 * 8; ++i) pixels.insert(pixels.end(), {static_cast<uint8_t>(3 * i), 5, 7});
  folder.temp.write("train/ant/a.png", png_bytes(pixels, 8, 8));
  folder.options.augment = {.min_scale = 1, .max_scale = 1, .min_ratio = 1, .max_ratio = 1};
  std::vector<float> upright;
  for (int i = 0; i < 10; ++i) {  // unless it is asked for
    const Draw draw(1, i, 0);
    upright = read(*folder.open(), 0, &draw, 0);
    for (size_t p = 0; p < pixels.size(); ++p) REQUIRE(upright[p] == Approx(pixels[p]).margin(1e-3));
  }
  folder.options.augment.flip = true;
  const auto dataset = folder.open();
  int flips = 0;
  for (int i = 0; i < 200; ++i) {
    const Draw draw(1, i, 0);
    const std::vector<float> out = read(*dataset, 0, &draw, 0);
    const bool flipped = out[0] > 1;  // pixel 7 instead of pixel 0
    flips += flipped;
    for (size_t y = 0; y < 8; ++y) {
      for (size_t x = 0; x < 8; ++x) {
        for (size_t c = 0; c < 3; ++c) {
          REQUIRE(out[(y * 8 + x) * 3 + c] == upright[(y * 8 + (flipped ? 7 - x : x)) * 3 + c]);
        }
      }
    }
  }
  CHECK(flips == Approx(100).margin(35));
}

TEST_CASE("image folder: a large JPEG may come at a smaller scale in training, and nothing moves") {
  Folder folder;
  Bytes pixels;  // every filter that is symmetric leaves a slope as it is
  for (int y = 0; y < 96; ++y) {
    for (int x = 0; x < 120; ++x) {
      pixels.insert(pixels.end(),
                    {static_cast<uint8_t>(2 * x), static_cast<uint8_t>(2 * y), static_cast<uint8_t>(x + y)});
    }
  }
  folder.temp.write("train/ant/a.png", png_bytes(pixels, 120, 96));
  folder.temp.write("train/ant/b.jpg", jpeg_bytes(pixels, 120, 96, TJPF_RGB, TJSAMP_420));
  folder.options.augment = {.flip = true, .min_scale = 0.5};
  const auto train = folder.open();  // boxes of 60 pixels and more become 8: the JPEG comes at a quarter
  for (int i = 0; i < 20; ++i) {
    const Draw draw(1, i, 0);
    const std::vector<float> png = read(*train, 0, &draw, 0), jpeg = read(*train, 1, &draw, 0);
    for (size_t p = 0; p < png.size(); ++p) {
      const size_t y = p / 24, x = p / 3 % 8;
      const bool inside = std::min(x, y) > 0 && std::max(x, y) < 7;  // at the border, filters are cut off
      REQUIRE(jpeg[p] == Approx(png[p]).epsilon(0).margin(inside ? 3 : 6));
    }
  }
}

TEST_CASE("image folder: classes that the test images lack are remarked") {
  Folder folder;
  const std::vector<std::string> remarks = folder.open(Split::test)->remarks();
  REQUIRE(remarks.size() == 1);
  CHECK_THAT(remarks[0], Catch::Contains("/val: there is no folder for 1 of the 2 classes") && Catch::EndsWith("ant"));
  folder.temp.write("val/ant/a.png", png_bytes(solid(9, 9, 1, 2, 3), 9, 9));
  CHECK(folder.open(Split::test)->remarks().empty());
}

TEST_CASE("image folder: what is not read is remarked") {
  Folder folder;
  folder.temp.write("train/cat/more/c.png", {});
  folder.temp.write("train/cat/more.png/c.png", {});
  for (const char* name : {"s", "p", "x", "q", "z", "t"}) folder.temp.write(std::string("train/ant/") + name, {});
  const auto train = folder.open();
  CHECK(train->size() == 3);
  const std::vector<std::string> remarks = train->remarks();
  REQUIRE(remarks.size() == 1);
  CHECK_THAT(remarks[0], Catch::Contains("/train: 9 entries of class folders are no .jpg, .jpeg or .png files and are "
                                         "not read; the first: ant/notes.txt"));
  folder.temp.write("val/ant/a.png", png_bytes(solid(9, 9, 1, 2, 3), 9, 9));
  folder.temp.write("test/cat/a.png", png_bytes(solid(9, 9, 1, 2, 3), 9, 9));
  const std::vector<std::string> two = folder.open(Split::test)->remarks();
  REQUIRE(two.size() == 1);
  CHECK_THAT(two[0], Catch::Contains("/test is not read, as there is ") && Catch::EndsWith("/val too"));
}

TEST_CASE("image folder: classes that a run has learnt keep their numbers, and need no training images") {
  Folder folder;
  folder.options.class_names = {"zebra", "cat"};
  std::filesystem::remove_all(folder.temp.path() + "/train");
  const auto test = folder.open(Split::test);
  CHECK(test->classes() == 2);
  CHECK(read(*test, 0, nullptr, 1)[2] == Approx(3).margin(1e-3));
  folder.temp.write("val/ant/a.png", png_bytes(solid(9, 9, 1, 2, 3), 9, 9));
  CHECK_THAT(folder.error(Split::test), Catch::Contains("/val/ant: there is no class of this name in what the run"));
}

TEST_CASE("image folder: an image without an end is refused") {
  Folder folder;
  std::filesystem::create_symlink("/dev/zero", folder.temp.path() + "/train/ant/endless.png");
  const auto train = folder.open();
  std::vector<float> out(static_cast<size_t>(train->shape().numel()));
  CHECK_THAT(user_error([&] { train->read(0, nullptr, out.data()); }),
             Catch::Contains("train/ant/endless.png: longer than the 256 MiB"));
}

TEST_CASE("image folder: what is wrong is named") {
  Folder folder;
  const std::string root = folder.temp.path();
  SECTION("no folder") {
    folder.options.path = root + "/none";
    CHECK_THAT(folder.error(), Catch::Contains("/none: there is no such folder; set data.path"));
  }
  SECTION("a home that no shell has put in") {
    folder.options.path = "~/none";
    CHECK(folder.error() ==
          "~/none: there is no such folder; a shell puts your home for ~ only where a word begins with it: write "
          "\"$HOME/none\", or in a file the whole path; set data.path");
  }
  SECTION("a file") {
    folder.options.path = root + "/train/cat/b.png";
    CHECK_THAT(folder.error(), Catch::EndsWith("/b.png: this is a file, and no folder; set data.path"));
  }
  SECTION("no train") {
    std::filesystem::remove_all(root + "/train");
    CHECK(folder.error() == root + "/train: there is no such folder; set data.path");
  }
  SECTION("classes that lie in the folder itself") {
    std::filesystem::rename(root + "/train/cat", root + "/zebra");
    std::filesystem::remove_all(root + "/train");
    std::filesystem::create_symlink("nowhere", root + "/broken");
    std::filesystem::copy(root + "/zebra", root + "/test");
    CHECK(folder.error() == root + "/train: there is no such folder; move zebra and the other classes from " + root +
                                " into it, and then some pictures of each into " + root +
                                "/val/CLASS (docs/first_hour.md)");
  }
  SECTION("no classes") {
    std::filesystem::remove_all(root + "/train/cat");
    std::filesystem::remove_all(root + "/train/ant");
    CHECK_THAT(folder.error(), Catch::Contains("/train: there is no class folder in it"));
  }
  SECTION("no test split") {
    std::filesystem::remove_all(root + "/val");
    CHECK_THAT(folder.error(Split::test),
               Catch::EndsWith("neither a folder val nor a folder test in it; set data.path"));
    folder.options.holds_back = true;
    CHECK_THAT(folder.error(Split::test), Catch::EndsWith("in it, and data.validation_split makes no test set; set "
                                                          "data.path"));
  }
  SECTION("a test split of another name") {
    const std::string name = GENERATE("valid", "validation");
    std::filesystem::rename(root + "/val", root + "/" + name);
    CHECK_THAT(folder.error(Split::test), Catch::EndsWith("a folder test in it; rename " + name + " to val"));
  }
  SECTION("test is as good as val") {
    std::filesystem::rename(root + "/val", root + "/test");
    CHECK(folder.open(Split::test)->size() == 1);
    CHECK(folder.open(Split::test)->remarks().size() == 1);  // of the class without an image
    CHECK(folder.open()->remarks().size() == 1);             // of what is not read
  }
  SECTION("unknown class") {
    folder.temp.write("val/dog/a.png", {});
    CHECK_THAT(folder.error(Split::test), Catch::Contains("/val/dog: there is no class of this name in"));
  }
  SECTION("a class that config.json could not name") {
    folder.temp.write("train/caf\xe9/a.png", {});
    CHECK_THAT(folder.error(), Catch::Contains("the name of a class has to be UTF-8; rename it"));
  }
  SECTION("a class whose link leads nowhere") {
    std::filesystem::create_symlink("nowhere", root + "/train/dog");
    CHECK_THAT(folder.error(), Catch::Contains("/train/dog: No such file or directory; mend that link"));
  }
  SECTION("a pipe that is named like an image") {
    mkfifo((root + "/train/cat/c.png").c_str(), 0600);
    const auto dataset = folder.open();
    CHECK(dataset->size() == 3);
    CHECK_THAT(dataset->remarks().front(), Catch::Contains("2 entries of class folders are no"));
  }
  SECTION("empty class") {
    std::filesystem::remove(root + "/train/ant/z.jpg");
    CHECK_THAT(folder.error(), Catch::Contains("/train/ant: there is no .jpg, .jpeg or .png file in it"));
  }
  SECTION("corrupt image") {
    const std::string path = folder.temp.write("train/cat/b.png", {1, 2, 3, 4});
    const auto dataset = folder.open();
    std::vector<float> out(192);
    CHECK(user_error([&] { dataset->read(2, nullptr, out.data()); }) == path + ": neither a JPEG nor a PNG file");
  }
  SECTION("an image that went away") {
    const auto dataset = folder.open();
    std::filesystem::remove(root + "/train/cat/b.png");
    std::vector<float> out(192);
    CHECK_THAT(user_error([&] { dataset->read(2, nullptr, out.data()); }), Catch::Contains("b.png: cannot open it"));
  }
}

TEST_CASE("image folder: pixels are normalised with ImageNet's mean and deviation, per channel") {
  const Folder folder;
  const auto dataset = open_image_folder(folder.temp.path(), {.image_size = 8}, Split::train);
  const std::vector<float> out = read(*dataset, 2, nullptr, 1);  // a PNG of 10, 20 and 30
  CHECK(out[0] == Approx((10 / 255.0 - 0.485) / 0.229).margin(1e-4));
  CHECK(out[1] == Approx((20 / 255.0 - 0.456) / 0.224).margin(1e-4));
  CHECK(out[2] == Approx((30 / 255.0 - 0.406) / 0.225).margin(1e-4));
}

}  // namespace
}  // namespace dgc
