#include "data/speech/corpus.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <tuple>

#include "data/speech/sound_file.h"

namespace dgc {
namespace {

void check_length(const Utterance& u, const SpeechOptions& o) {
  const double window = o.features.window_ms / 1000;
  if (u.seconds < window) {
    throw_bad_example("{}: it is {:.6g} s long, shorter than a window of {:.6g} s; remove it", u.path, u.seconds,
                      window);
  }
  if (u.seconds > o.audio.max_seconds) {
    throw_bad_example(
        "{}: its {:.6g} s are more than the {} s of data.max_seconds; cut it up, or raise data.max_seconds", u.path,
        u.seconds, o.audio.max_seconds);
  }
}

void look_up_length(Utterance& u, const AudioOptions& o) {
  if (u.seconds > 0) {
    if (access(u.path.c_str(), R_OK) != 0) throw_bad_example("{}: cannot open it: {}", u.path, error_text());
    return;
  }
  const SoundFile file(u.path);
  check_rate(file.rate(), u.path, o);
  u.seconds = file.seconds();
  if (u.seconds > 0) return;
  // The header gives no number of samples, or 0. Reading tells which of both is true.
  AudioScratch scratch;
  std::vector<float> samples;
  read_audio(u.path, o, scratch, samples);
  u.seconds = static_cast<double>(samples.size()) / static_cast<double>(o.sample_rate);
}

}  // namespace

SpeechCorpus::SpeechCorpus(std::vector<Utterance> utterances, const SpeechOptions& o, int thread_count) {
  const Alphabet alphabet(o.alphabet);
  std::vector<Example> examples(utterances.size());
  std::vector<std::string> errors(utterances.size());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i; (i = next++) < utterances.size();) {
      Example& example = examples[i];
      try {
        example.utterance = std::move(utterances[i]);
        example.labels = alphabet.labels(example.utterance.text, example.utterance.name);
        example.utterance.text = alphabet.text(example.labels);
        look_up_length(example.utterance, o.audio);
        check_length(example.utterance, o);
      } catch (const BadExample& error) {
        errors[i] = error.what();
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int i = 1; i < thread_count; ++i) threads.emplace_back(work);
    work();
  }
  for (size_t i = 0; i < examples.size(); ++i) {
    if (errors[i].empty()) {
      examples_.push_back(std::move(examples[i]));
    } else if (o.on_bad_example == OnBadExample::refuse) {
      throw BadExample(errors[i]);
    } else {
      skipped_.push_back(std::move(errors[i]));
    }
  }
  if (examples_.empty()) {
    throw_user_error("data: not one of {} utterances can be used; of the first: {}", errors.size(),
                     skipped_.empty() ? "there is none" : skipped_.front());
  }
  std::sort(examples_.begin(), examples_.end(), [](const Example& a, const Example& b) {
    return std::tie(a.utterance.seconds, a.utterance.path) < std::tie(b.utterance.seconds, b.utterance.path);
  });
}

}  // namespace dgc
