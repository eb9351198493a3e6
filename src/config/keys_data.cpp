#include "config/keys.h"

namespace dgc {

void add_data_keys(Keys& keys) {
  const std::vector<std::string> files = {"cifar10", "mnist",       "fashion_mnist",  "image_folder",
                                          "an4",     "librispeech", "speech_manifest"};
  const std::vector<std::string> small = {"cifar10", "mnist", "fashion_mnist"};
  const std::vector<std::string> folder = {"image_folder"};
  const std::vector<std::string> synthetic = {"synthetic"};
  const std::vector<std::string> images = {"cifar10", "mnist", "fashion_mnist", "image_folder", "synthetic"};
  const std::vector<std::string> all_but_text = {"cifar10",   "mnist", "fashion_mnist", "image_folder",
                                                 "synthetic", "an4",   "librispeech",   "speech_manifest"};

  constexpr int64_t kMostSamples = 100000000;  // an epoch's order takes 4 bytes of each

  auto data = Section<Config>(keys).section("data", &Config::data);
  data.select(
      "type", &DataOptions::type,
      "`image_folder`: JPEG or PNG in `train/CLASS/` and `val/CLASS/` (or `test/`); `synthetic`: a pattern per "
      "class, and noise; `text`: files with one sentence a line; `an4`, `librispeech`, `speech_manifest`: recordings "
      "and what is said in them (data/README.md)");
  data.add("path", &DataOptions::path,
           "Folder; a relative one is seen from where `dgc train` is started, and RUN/config.json has it absolute. "
           "`data/` prepares them")
      .only(files)
      .must_be_given()
      .matches(".+")
      .free_on_resume();
  auto augment = data.section("augment", &DataOptions::augment);
  augment
      .add("pad_crop", &AugmentationOptions::pad_crop, "Zero pixels around the image, then a random crop of its size")
      .only({"cifar10", "mnist", "fashion_mnist", "synthetic"})
      .at_least(0)
      .at_most(1000);
  augment.add("flip", &AugmentationOptions::flip, "Mirror left to right, every second time").only(images);
  augment.add("min_scale", &AugmentationOptions::min_scale, "Random-resized-crop: smallest share of the image's area")
      .only(folder)
      .more_than(0)
      .at_most(1);
  augment.add("max_scale", &AugmentationOptions::max_scale, "Random-resized-crop: largest share of the image's area")
      .only(folder)
      .more_than(0)
      .at_most(1);
  augment.add("min_ratio", &AugmentationOptions::min_ratio, "Random-resized-crop: least width / height")
      .only(folder)
      .at_least(0.01)
      .at_most(100);
  augment.add("max_ratio", &AugmentationOptions::max_ratio, "Random-resized-crop: greatest width / height")
      .only(folder)
      .at_least(0.01)
      .at_most(100);
  data.add("pad_to", &DataOptions::pad_to,
           "Side to which images are padded with black (32 makes Fashion-MNIST CIFAR's size); 0: none")
      .only(small)
      .at_least(0)
      .at_most(4096);
  data.add("image_size", &DataOptions::image_size, "Side of the square that the model sees")
      .only(folder)
      .at_least(1)
      .at_most(4096);
  data.add("height", &DataOptions::height, "Of an image").only(synthetic).at_least(1).at_most(4096);
  data.add("width", &DataOptions::width, "Of an image").only(synthetic).at_least(1).at_most(4096);
  data.add("channels", &DataOptions::channels, "Of an image").only(synthetic).at_least(1).at_most(1024);
  data.add("classes", &DataOptions::classes, "Of the set").only(synthetic).at_least(2).at_most(1000000);
  data.add("train_samples", &DataOptions::train_samples, "In the training set")
      .only(synthetic)
      .at_least(1)
      .at_most(kMostSamples);
  data.add("test_samples", &DataOptions::test_samples, "In the test set")
      .only(synthetic)
      .at_least(1)
      .at_most(kMostSamples);
  data.add("noise", &DataOptions::noise, "Standard deviation; that of the patterns is 1")
      .only(synthetic)
      .at_least(0)
      .at_most(1000);
  data.add("threads", &DataOptions::threads, "That decode and augment ahead of the step, per rank")
      .only(all_but_text)
      .at_least(1)
      .at_most(1024)
      .free_on_resume();
  data.add("train_limit", &DataOptions::train_limit, "Use only the first so many training samples; of text, words")
      .at_least(1);
  data.add("test_limit", &DataOptions::test_limit, "Use only the first so many test samples; of text, words")
      .at_least(1);

  const std::vector<std::string> texts = {"text"};
  auto text = data.part(&DataOptions::text);
  const auto file = [&](const char* name, std::string TextDataOptions::*member, const char* doc) -> Key& {
    return text.add(name, member, doc).only(texts);
  };
  file("train", &TextDataOptions::train,
       "Text to train on; UTF-8, words between spaces (data/README.md). A relative file is seen as `path` is, and so "
       "are the next three")
      .must_be_given()
      .matches(".+")
      .free_on_resume();
  file("valid", &TextDataOptions::valid, "Text by which `plateau` lowers the learning rate; evaluated as often as said")
      .must_be_given()
      .matches(".+")
      .free_on_resume();
  file("test", &TextDataOptions::test, "Text that the run is measured by, at its end")
      .must_be_given()
      .matches(".+")
      .free_on_resume();
  file("vocabulary", &TextDataOptions::vocabulary, "File with one word a line. Default: the words of `train`")
      .free_on_resume();
  text.add("vocabulary_size", &TextDataOptions::vocabulary_size,
           "Keep only the most frequent words of `train`; the others are `<unk>`. null: all")
      .only(texts)
      .at_least(2);
  text.add("bptt", &TextDataOptions::bptt,
           "Words of each stream in a step: so far do gradients go back in time. What is carried on goes further")
      .only(texts)
      .at_least(1)
      .at_most(100000);
  text.add("eval_streams", &TextDataOptions::eval_streams,
           "Parts of a text that an evaluation reads side by side. 1 predicts every word from all before it, and is "
           "slow")
      .only(texts)
      .at_least(1)
      .at_most(100000);
  add_speech_data_keys(data);
}

}  // namespace dgc
