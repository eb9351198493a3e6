#pragma once

#include <fmt/format.h>

#include "tests/data/speech/sounds.h"
#include "tests/support/tiny.h"

// Speech models that train in milliseconds.
namespace dgc::test {

// A language of two letters, which are tones, and words between silences, at 4 kHz.
inline std::vector<float> spoken(const std::string& text) {
  std::vector<float> samples(160);
  for (const char c : text) {
    const std::vector<float> sound = c == ' ' ? std::vector<float>(240) : sine(c == 'A' ? 400 : 1300, 4000, 240);
    samples.insert(samples.end(), sound.begin(), sound.end());
    samples.insert(samples.end(), 80, 0.f);
  }
  return samples;
}

// Of one to three words of one to three letters, from a fixed pattern.
inline std::string tiny_sentence(int number) {
  std::string text;
  for (int w = 0; w <= number * number % 3; ++w) {
    if (w > 0) text += ' ';
    for (int l = 0; l <= (number + 2 * w) % 3; ++l) text += (number * 5 + w * 3 + l * l * 7) % 4 < 2 ? 'A' : 'B';
  }
  return text;
}

// A folder with 26 recordings to train on and 6 to test, and configs that name them: 4 workers x 2 utterances, 3 steps
// an epoch, 6 in all.
class TinySpeech {
 public:
  TinySpeech() {
    list("train.jsonl", 0, 26);
    list("test.jsonl", 26, 32);
  }
  // Sentences [first, end) in a manifest.
  void list(const std::string& manifest, int first, int end) const {
    std::string lines;
    for (int i = first; i < end; ++i) lines += line(fmt::format("{}.wav", i), tiny_sentence(i), tiny_sentence(i));
    write(manifest, lines);
  }
  // Makes a recording, and returns its line in a manifest.
  std::string line(const std::string& name, const std::string& said, const std::string& transcript) const {
    write_sound(folder_, name, spoken(said), {.rate = 4000});
    return fmt::format("{{\"path\": \"{}\", \"text\": \"{}\"}}\n", name, transcript);
  }
  void write(const std::string& name, const std::string& text) const {
    folder_.write(name, Bytes(text.begin(), text.end()));
  }
  std::filesystem::path path(const std::string& name) const { return std::filesystem::path(folder_.path()) / name; }

  Config config(const std::vector<std::string>& overrides = {}) const {
    static const char* const text = R"({
      "device": "cpu", "seed": 3, "threads": 1, "workers_per_rank": 4,
      "model": {"type": "deep_speech", "layers": 2, "hidden": 8,
                "convolutions": {"channels": [4], "kernel_frames": [3], "kernel_frequencies": [9],
                                 "stride_frames": [2], "stride_frequencies": [4]}},
      "data": {"type": "speech_manifest", "path": "", "sample_rate": 4000, "alphabet": "AB ", "max_seconds": 2},
      "training": {"epochs": 2, "batch_per_worker": 2, "eval_batch": 4},
      "optimizer": {"type": "sgd"},
      "learning_rate": {"type": "constant", "base": 0.01}})";
    std::vector<std::string> all = {
        R"(optimizer={"type": "dgc", "momentum": 0.9, "nesterov": true, "sparsity": 0.9, "clip_norm": 100,
                      "warmup": {"epochs": 1, "sparsity": [0.5, 0.75]}})",
        "data.path=" + folder_.path()};
    all.insert(all.end(), overrides.begin(), overrides.end());
    return parse_config(text, "tiny_speech.json", all);
  }

 private:
  TempFolder folder_;
};

}  // namespace dgc::test
