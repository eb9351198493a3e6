#include "config/data_types.h"
#include "config/keys.h"
#include "config/table.h"

namespace dgc {

void add_data_keys(Keys& keys) {
  const auto types = [](auto wanted) { return names_of(data_types(), wanted); };
  const auto folders = types([](const DataType& t) { return t.is_folder; });
  const auto small = types([](const DataType& t) { return t.small.has_value(); });
  const auto any_size = types([](const DataType& t) { return t.any_size; });
  const auto images = types([](const DataType& t) { return t.kind == DataKind::images; });
  const auto photos = types([](const DataType& t) { return t.kind == DataKind::images && t.is_folder; });
  const auto texts = types([](const DataType& t) { return t.kind == DataKind::text; });
  const auto all_but_text = types([](const DataType& t) { return t.kind != DataKind::text; });

  constexpr int64_t kMostSamples = 100000000;  // an epoch's order takes 4 bytes per sample

  auto data = Section<Config>(keys).section("data", &Config::data);
  data.select(
      "type", &DataOptions::type, names_of(data_types()),
      "`image_folder`: JPEG or PNG in `train/CLASS/` and `val/CLASS/` (or `test/`); `synthetic`: a pattern per "
      "class, and noise; `text`: files with one sentence a line; `an4`, `librispeech`, `speech_manifest`: recordings "
      "and what is said in them (data/README.md)");
  data.add("path", &DataOptions::path,
           "Folder; a relative one is seen from where `dgc train` is started, and RUN/config.json has it absolute. "
           "`data/` prepares them")
      .only(folders)
      .must_be_given()
      .matches(".+")
      .is_path()
      .free_on_resume();
  const auto image = data.part(&DataOptions::images);
  const auto augment = image.section("augment", &ImageOptions::augment);
  augment.add("pad_crop", &AugmentOptions::pad_crop, "Zero pixels around the image, then a random crop of its size")
      .only(small)
      .at_least(0)
      .at_most(1000);
  augment.add("flip", &AugmentOptions::flip, "Mirror left to right, every second time").only(photos);
  augment.add("min_scale", &AugmentOptions::min_scale, "Random-resized-crop: smallest share of the image's area")
      .only(any_size)
      .more_than(0)
      .at_most(1);
  augment.add("max_scale", &AugmentOptions::max_scale, "Random-resized-crop: largest share of the image's area")
      .only(any_size)
      .more_than(0)
      .at_most(1);
  augment.add("min_ratio", &AugmentOptions::min_ratio, "Random-resized-crop: least width / height")
      .only(any_size)
      .at_least(0.01)
      .at_most(100);
  augment.add("max_ratio", &AugmentOptions::max_ratio, "Random-resized-crop: greatest width / height")
      .only(any_size)
      .at_least(0.01)
      .at_most(100);
  image
      .add("pad_to", &ImageOptions::pad_to,
           "Side to which images are padded with black (32 makes Fashion-MNIST CIFAR's size); 0: none")
      .only(small)
      .at_least(0)
      .at_most(4096);
  image
      .add("only_classes", &ImageOptions::only_classes,
           "Only the images of these classes, which are numbered by their places in this list; `[]`: all. Of an "
           "`image_folder`, make a folder of links")
      .only(small)
      .at_least(0);
  image.add("image_size", &ImageOptions::image_size, "Side of the square that the model sees")
      .only(any_size)
      .at_least(1)
      .at_most(4096);
  const auto synthetic = image.only({"synthetic"}).part(&ImageOptions::synthetic);
  synthetic.add("height", &SyntheticOptions::height, "Of an image").at_least(1).at_most(4096);
  synthetic.add("width", &SyntheticOptions::width, "Of an image").at_least(1).at_most(4096);
  synthetic.add("channels", &SyntheticOptions::channels, "Of an image").at_least(1).at_most(1024);
  synthetic.add("classes", &SyntheticOptions::classes, "Of the set").at_least(2).at_most(1000000);
  synthetic.add("train_samples", &SyntheticOptions::train_samples, "In the training set")
      .at_least(1)
      .at_most(kMostSamples);
  synthetic.add("test_samples", &SyntheticOptions::test_samples, "In the test set").at_least(1).at_most(kMostSamples);
  synthetic.add("noise", &SyntheticOptions::noise, "Standard deviation; that of the patterns is 1")
      .at_least(0)
      .at_most(1000);
  data.add("threads", &DataOptions::threads, "That decode and augment ahead of the step, per rank")
      .only(all_but_text)
      .at_least(1)
      .at_most(1024)
      .free_on_resume();
  data.add("train_limit", &DataOptions::train_limit,
           "Use only the first so many training samples; of text, words. Of an image_folder, so many at equal "
           "distances, as its images lie class by class")
      .at_least(1);
  data.add("test_limit", &DataOptions::test_limit,
           "Use only so many test samples, chosen as those of `train_limit`; of text, words, and of the validation "
           "text too")
      .at_least(1);
  data.add("validation_split", &DataOptions::validation_split,
           "Share of the training set, drawn by `seed`, that is held back: evaluations during training are on it, and "
           "`plateau`, `checkpoint.best` and `training.stop_after` go by its loss. The test set is evaluated at the "
           "end. 0: no such set, and the test set takes its place")
      .only(all_but_text)
      .at_least(0)
      .less_than(1);

  const auto text = data.only(texts).part(&DataOptions::text);
  text.add("train", &TextDataOptions::train,
           "Text to train on; UTF-8, words between spaces (data/README.md). A relative file is seen as `path` is, and "
           "so are the next three")
      .must_be_given()
      .matches(".+")
      .is_path()
      .free_on_resume();
  text.add("valid", &TextDataOptions::valid,
           "Text by which `plateau` lowers the learning rate; evaluated as often as said")
      .must_be_given()
      .matches(".+")
      .is_path()
      .free_on_resume();
  text.add("test", &TextDataOptions::test, "Text that the run is measured by, at its end")
      .must_be_given()
      .matches(".+")
      .is_path()
      .free_on_resume();
  text.add("vocabulary", &TextDataOptions::vocabulary, "File with one word a line. Default: the words of `train`")
      .is_path()
      .free_on_resume();
  text.add("vocabulary_size", &TextDataOptions::vocabulary_size,
           "Keep only the most frequent words of `train`; the others are `<unk>`. null: all")
      .at_least(3);
  text.add("bptt", &TextDataOptions::bptt,
           "Words of each stream in a step: so far do gradients go back in time. What is carried on goes further")
      .at_least(1)
      .at_most(100000);
  text.add("eval_streams", &TextDataOptions::eval_streams,
           "Parts of a text that an evaluation reads side by side. 1 predicts every word from all before it, and is "
           "slow")
      .at_least(1)
      .at_most(100000);
  add_speech_data_keys(data);
}

}  // namespace dgc
