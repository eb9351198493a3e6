#include "data/images/image_folder.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <set>

#include "data/file.h"
#include "data/images/image_file.h"
#include "data/images/random_crop.h"
#include "tensor/counted.h"
#include "tensor/errors.h"
#include "tensor/utf8.h"

namespace dgc {
namespace {

namespace fs = std::filesystem;

// Hidden files are left out.
template <typename Wanted>
std::vector<std::string> shown_in(const std::string& folder, const Wanted& wanted) {
  return names_in(folder, [&](const fs::directory_entry& entry) {
    return entry.path().filename().string().front() != '.' && wanted(entry);
  });
}

bool is_image(const fs::directory_entry& entry) {
  std::string extension = entry.path().extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  std::error_code error;
  const bool is_named = extension == ".jpg" || extension == ".jpeg" || extension == ".png";
  // What another program writes into a pipe can be read once.
  return is_named && !entry.is_fifo(error) && !entry.is_directory(error);
}

bool there_is_folder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// The folders of images in a folder but those of other parts, and those that cannot be listed, as "lost+found".
std::vector<std::string> classes_in(const std::string& root) {
  static const std::set<std::string> parts = {"train", "training", "val", "valid", "validation", "test"};
  const auto has_image = [](const fs::path& folder) {
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      if (is_image(*it)) return true;
    }
    return false;
  };
  return shown_in(root, [&](const fs::directory_entry& entry) {
    return !parts.contains(entry.path().filename().string()) && has_image(entry.path());
  });
}

// Throws UserError unless there is ROOT/train. Other programs have the classes in ROOT itself.
void require_train(const std::string& root, const std::string& fix) {
  const std::string train = root + "/train";
  if (there_is_folder(train)) return;
  const std::vector<std::string> classes = classes_in(root);
  if (classes.empty()) return require_folder(train, fix);
  throw_user_error(
      "{}: there is no such folder; move {} and the other classes from {} into it, and then some pictures of each into "
      "{}/val/CLASS (docs/first_hour.md)",
      train, classes.front(), root, root);
}

std::string test_folder(const std::string& root, bool holds_back, const std::string& fix) {
  for (const char* name : {"/val", "/test"}) {
    if (there_is_folder(root + name)) return root + name;
  }
  std::string way = fix;
  for (const char* name : {"validation", "valid"}) {
    if (there_is_folder(root + "/" + name)) way = fmt::format("rename {} to val", name);
  }
  throw_user_error("{}: there is neither a folder val nor a folder test in it{}; {}", root,
                   holds_back ? ", and data.validation_split makes no test set" : "", way);
}

void resize_box(const ImagePart& part, int64_t size, ResizeScratch& scratch, float* out) {
  const auto top = static_cast<int64_t>(part.top), left = static_cast<int64_t>(part.left);
  const auto axis = [size](double from, double span, int64_t first) {
    const auto end = static_cast<int64_t>(std::ceil(from + span));
    return ResizeAxis{end - first, from - static_cast<double>(first), span, size, 0, size};
  };
  const int64_t stride = part.image.width * 3;
  resize_rgb(part.image.pixels.data() + top * stride + left * 3, stride, axis(part.top, part.height, top),
             axis(part.left, part.width, left), scratch, out);
}

void mirror(float* image, int64_t size) {
  for (int64_t y = 0; y < size; ++y, image += size * 3) {
    for (int64_t x = 0; x < size / 2; ++x) {
      std::swap_ranges(image + x * 3, image + x * 3 + 3, image + (size - 1 - x) * 3);
    }
  }
}

}  // namespace

ImageFolder::ImageFolder(const std::string& root, Split split, const ImageOptions& options, Normalizer normalizer,
                         const std::string& fix)
    : root_(root), image_size_(options.image_size), augment_(options.augment), normalizer_(std::move(normalizer)) {
  require_folder(root, fix);
  const std::string train = root + "/train";
  if (split == Split::train || options.class_names.empty()) require_train(root, fix);
  class_names_ = options.class_names.empty() ? shown_in(train, is_folder) : options.class_names;
  if (class_names_.empty()) throw_user_error("{}: there is no class folder in it", train);
  for (const std::string& name : class_names_) {
    if (find_invalid_utf8(name)) throw_user_error("{}/{}: the name of a class has to be UTF-8; rename it", train, name);
  }
  folder_ = split == Split::train ? train : test_folder(root, options.holds_back, fix);
  const std::vector<std::string> found_names = shown_in(folder_, is_folder);
  std::ranges::copy_if(class_names_, std::back_inserter(missing_),
                       [&](const std::string& name) { return !std::ranges::binary_search(found_names, name); });
  for (const std::string& name : found_names) {
    const auto found = std::ranges::find(class_names_, name);
    if (found == class_names_.end()) {
      throw_user_error("{}/{}: there is no class of this name in {}", folder_, name,
                       options.class_names.empty() ? train : "what the run has learnt, its classes.json");
    }
    std::vector<std::string> others;
    std::vector<std::string> files = shown_in(folder_ + "/" + name, [&](const fs::directory_entry& entry) {
      if (is_image(entry)) return true;
      others.push_back(entry.path().filename().string());
      return false;
    });
    if (files.empty()) throw_user_error("{}/{}: there is no .jpg, .jpeg or .png file in it", folder_, name);
    if (!others.empty() && not_read_ == 0) first_not_read_ = name + "/" + *std::ranges::min_element(others);
    not_read_ += std::ssize(others);
    const auto label = static_cast<int32_t>(found - class_names_.begin());
    for (std::string& file : files) files_.push_back({label, std::move(file)});
  }
  if (files_.empty()) throw_user_error("{}: there is no class folder in it", folder_);
}

std::vector<std::string> ImageFolder::remarks() const {
  std::vector<std::string> remarks;
  if (!missing_.empty()) {
    remarks.push_back(
        fmt::format("{}: there is no folder for {} of the {} classes, and so nothing tells how well they are known; "
                    "the first: {}",
                    folder_, missing_.size(), class_names_.size(), missing_.front()));
  }
  if (not_read_ > 0) {
    remarks.push_back(fmt::format("{}: {} of class folders {}; the first: {}", folder_,
                                  counted(not_read_, "entry", "entries"),
                                  not_read_ == 1 ? "is no .jpg, .jpeg or .png file and is not read"
                                                 : "are no .jpg, .jpeg or .png files and are not read",
                                  first_not_read_));
  }
  if (const std::string test = root_ + "/test"; folder_ == root_ + "/val" && there_is_folder(test)) {
    remarks.push_back(fmt::format("{} is not read, as there is {} too", test, folder_));
  }
  return remarks;
}

std::string ImageFolder::path(int64_t i) const {
  const File& file = files_[static_cast<size_t>(i)];
  return folder_ + "/" + class_names_[static_cast<size_t>(file.label)] + "/" + file.name;
}

int32_t ImageFolder::read(int64_t i, const Draw* draw, float* out) const {
  DGC_CHECK(i >= 0 && i < size(), "sample index");
  thread_local ImageScratch scratch;
  // Evaluation needs most of the image, and gets all of its pixels. In training a large box may come at a smaller
  // scale: with so many pixels left, the result changes less than it would by another filter (docs/results.md).
  const double least = 1.5 * static_cast<double>(image_size_);
  const auto choose = [&](int64_t height, int64_t width) {
    if (draw == nullptr) return whole_image(height, width);
    return WantedPart{random_resized_crop(height, width, augment_, *draw), least, least};
  };
  read_image_file(path(i), choose, scratch);
  if (draw != nullptr) {
    resize_box(scratch.part, image_size_, scratch.resize, out);
  } else {
    resize_centre(scratch, shorter_side(image_size_), image_size_, out);
  }
  normalizer_.apply(out, image_size_ * image_size_);
  if (draw != nullptr && augment_.flip && draw->below(kRandomCropSlots, 2) == 1) mirror(out, image_size_);
  return files_[static_cast<size_t>(i)].label;
}

}  // namespace dgc
