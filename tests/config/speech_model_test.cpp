#include <catch.hpp>

#include "tests/config/example.h"

using namespace dgc;
using test::refusal;
using test::replaced;

namespace {

const std::string kSpeech = R"({
  "model": {"type": "deep_speech", "cell": "lstm", "layers": 5, "hidden": 800},
  "data": {"type": "librispeech", "path": "data/LibriSpeech", "train": ["train-clean-100"]},
  "training": {"epochs": 80, "batch_per_worker": 5},
  "optimizer": {"type": "sgd"},
  "learning_rate": {"type": "exponential", "base": 3e-4, "factor": 0.9}
})";

std::string refused(const std::string& override) {
  return refusal([&] { parse_config(kSpeech, "speech.json", {override}); });
}

}  // namespace

TEST_CASE("a speech model's keys, and those that are left to it") {
  const Config c = parse_config(kSpeech, "speech.json");
  CHECK(c.model.type == "deep_speech");
  CHECK(c.model.speech.cell == RnnCell::lstm);
  CHECK(c.model.speech.layers == 5);
  CHECK(c.model.speech.convolutions == SpeechConvolutions{});
  CHECK(c.model.speech.classes == 29);  // the apostrophe, 26 letters, the space, and the blank
  CHECK(c.data.speech.train == std::vector<std::string>{"train-clean-100"});
  CHECK(c.data.speech.test.empty());
  CHECK(c.learning_rate.type == LrSchedule::Type::exponential);
  CHECK(parse_config(resolved_json(c), "speech.json") == c);

  const Config other = parse_config(
      kSpeech, "speech.json",
      {"data.alphabet=aé ", "data.train=[\"a\", \"b\"]", "data.augment.mask.time_masks=2",
       "data.augment.mask.time_frames=10", "data.features.kind=log_mel",
       R"(model.convolutions={"channels": [8], "kernel_frames": [5], "kernel_frequencies": [7], "stride_frames": [3],
          "stride_frequencies": [1]})"});
  CHECK(other.model.speech.classes == 4);  // of two bytes, but one character
  CHECK(other.data.speech.train == std::vector<std::string>{"a", "b"});
  CHECK(other.data.speech.augment.mask.time_masks == 2);
  CHECK(other.data.speech.features.kind == FeatureKind::log_mel);
  CHECK(other.model.speech.convolutions.channels == std::vector<int64_t>{8});
  CHECK(parse_config(resolved_json(other), "speech.json") == other);

  std::string chinese;  // as many characters as a newspaper has
  for (int i = 0; i < 3000; ++i) {
    chinese +=
        {static_cast<char>(0xe4 + i / 512), static_cast<char>(0xb8 + i / 64 % 8), static_cast<char>(0x80 + i % 64)};
  }
  CHECK_NOTHROW(parse_config(kSpeech, "speech.json", {"data.alphabet=" + chinese}));
}

TEST_CASE("a speech model's keys that contradict one another are refused, with the fix") {
  CHECK(refused("model.convolutions.channels=[32]") ==
        "speech.json: model.convolutions.kernel_frames: 2 entries, but "
        "model.convolutions.channels has 1: one for each convolution");
  CHECK(refused("model.convolutions.kernel_frames=[10,11]") ==
        "--set model.convolutions.kernel_frames=[10,11]: model.convolutions.kernel_frames: 10 is even; use 9 or 11");
  CHECK(refused("model.convolutions.channels=[1.5,2]") ==
        "--set model.convolutions.channels=[1.5,2]: model.convolutions.channels[0]: it must be an integer, not 1.5");
  CHECK(refused("model.convolutions.channels=[0,2]").find("out of range") != std::string::npos);
  CHECK(refused("data.train=[1]") == "--set data.train=[1]: data.train[0]: it must be a string, not 1");
  CHECK(refused("data.train=train-clean-100").find("it must be a list of strings, not \"train-clean-100\"") !=
        std::string::npos);
  CHECK(refused(R"(data.train=["a", "b", "./a/"])") ==
        R"(--set data.train=["a", "b", "./a/"]: data.train: "a" would be read twice, as "./a/" is there too; )"
        "leave one of the two out");
  CHECK_THAT(refused(R"(data.test=["b/1", "b"])"),
             Catch::Contains(R"(data.test: "b/1" would be read twice, as "b" is there too)"));
  CHECK(refused(R"(data.test=["b", "b1", "../b", ".hidden"])").empty());
  CHECK(refused(R"(data.train=[".", "../other", "../.hidden"])").empty());
  CHECK_THAT(refused(R"(data.train=["a", "."])"), Catch::Contains(R"("a" would be read twice, as "." is there too)"));
  CHECK_THAT(refused("data.alphabet=AA"),
             Catch::StartsWith("--set data.alphabet=AA: data.alphabet: the alphabet has the character 'A' twice"));
  CHECK_THAT(refused("data.alphabet=AB\xff"), Catch::Contains("data.alphabet: not UTF-8"));
  CHECK_THAT(refused("data.augment.mask.time_masks=1"),
             Catch::Contains("time_masks and time_frames do nothing without"));
  CHECK_THAT(refused("data.augment.mask.feature_width=9"),
             Catch::Contains("feature_masks and feature_width do nothing"));
  CHECK(refused("data.augment.min_tempo=1.2").find("data.augment.min_tempo: more than data.augment.max_tempo") !=
        std::string::npos);
  CHECK(refused("data.augment.min_noise_db=40").find("more than data.augment.max_noise_db") != std::string::npos);
  CHECK(refused("data.max_seconds=0.01").find("data.max_seconds: shorter than one frame") != std::string::npos);
  CHECK(refused("data.on_bad_example=ignore").find("\"refuse\", \"skip\"") != std::string::npos);
  CHECK(refused("data.path=" + std::string(2000, 'x')).find("longer than 1000 bytes") != std::string::npos);
  CHECK(refused("data.augment.flip=true").find("data.augment.flip") != std::string::npos);
  CHECK(refused("model.dropout=0.5").find("model.dropout: belongs to") != std::string::npos);
}

TEST_CASE("each convolution of a speech model has its sizes, and fits into what the one before leaves") {
  for (const std::string name : {"kernel_frames", "kernel_frequencies", "stride_frames", "stride_frequencies"}) {
    CHECK_THAT(refused("model.convolutions." + name + "=[1]"),
               Catch::Contains("model.convolutions." + name + ": 1 entry, but model.convolutions.channels has 2"));
  }
  // Of 161 frequencies windows of 41 leave, at every second place, 61.
  const auto sizes = [](const std::string& list) { return refused("model.convolutions.kernel_frequencies=" + list); };
  CHECK(sizes("[41,61]").empty());
  CHECK(sizes("[161,1]").empty());
  CHECK_THAT(sizes("[41,62]"), Catch::EndsWith("convolution 2 spans 62 frequencies, and its input has 61; lower it, or "
                                               "raise data.features.window_ms or data.sample_rate"));
  CHECK_THAT(sizes("[162,1]"), Catch::Contains("convolution 1 spans 162 frequencies, and its input has 161"));
  CHECK_THAT(refused("data.features.kind=log_mel"),
             Catch::EndsWith("convolution 1 spans 41 frequencies, and its input has 40; lower it, or raise "
                             "data.features.mels"));
  CHECK_THAT(refused("data.features.step_ms=0.01"),
             Catch::StartsWith("--set data.features.step_ms=0.01: data.features.step_ms: 0.01 ms are 0 samples"));
}

TEST_CASE("speech models and recordings go together") {
  CHECK(refused(R"(data={"type": "synthetic"})")
            .find("data.type: model.type \"deep_speech\" does not read it; use \"an4\", \"librispeech\" or "
                  "\"speech_manifest\"") != std::string::npos);
  // That it reads no images is said before what does not fit a recording.
  const std::vector<std::string> wide = {R"(data={"type": "synthetic"})",
                                         "model.convolutions.kernel_frequencies=[300,1]"};
  CHECK_THAT(refusal([&] { parse_config(kSpeech, "speech.json", wide); }),
             Catch::Contains("data.type: model.type \"deep_speech\" does not read it"));
  CHECK(refused(R"(model={"type": "resnet", "depth": 8, "classes": 10})")
            .find("model.type: data.type \"librispeech\" needs \"deep_speech\"") != std::string::npos);
  CHECK(refused(R"(data={"type": "an4", "path": "x", "train": ["y"]})").find("data.train: belongs to") !=
        std::string::npos);
}
