#include "tasks/speech_scorer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/speech/bad_example.h"
#include "decode/beam.h"
#include "decode/error_rate.h"
#include "decode/greedy.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

std::vector<float> log_probabilities(const FrameScores& logits) {
  std::vector<float> out;
  out.reserve(static_cast<size_t>(logits.frames * logits.classes));
  for (int64_t t = 0; t < logits.frames; ++t) {
    const float* const row = logits.row(t);
    const float top = *std::max_element(row, row + logits.classes);
    float sum = 0;
    for (int64_t c = 0; c < logits.classes; ++c) sum += std::exp(row[c] - top);
    const float norm = top + std::log(sum);
    for (int64_t c = 0; c < logits.classes; ++c) out.push_back(row[c] - norm);
  }
  return out;
}

std::optional<WordModel> read_words(const Alphabet& alphabet, const DecodingOptions& o) {
  if (o.words.empty()) return std::nullopt;
  if (o.beam == 1) throw_user_error("--lm: a word model needs a beam search; add --beam 64");
  if (!alphabet.space()) {
    throw_user_error("--lm: a word model needs words, and the run's data.alphabet has no space between them");
  }
  WordModel words(o.words.string());
  const auto can_be_written = [&](const std::string& word) {
    try {
      return !alphabet.labels(word, "").empty();
    } catch (const BadExample&) {
      return false;
    }
  };
  if (!words.has_word(can_be_written)) {
    throw_user_error(
        "--lm {}: none of its words consists of characters of the run's data.alphabet; are its letters "
        "capitals where the alphabet has small ones, or the other way round?",
        o.words.string());
  }
  return words;
}

// What is counted in a batch of speech.
enum : size_t { kUtterances, kLoss, kWithLoss, kWithoutLoss, kWords, kWordErrors, kCharacters, kCharacterErrors };

// The network's steps over so many frames.
int64_t steps_over(int64_t frames, int64_t frames_per_step) { return (frames + frames_per_step - 1) / frames_per_step; }

// CTC needs a step for each label, and one between equal ones.
bool fits(const Speech& speech, int64_t i, int64_t frames_per_step) {
  const std::span<const int32_t> labels = speech.corpus().labels(i);
  int64_t needed = std::ssize(labels);
  for (size_t l = 1; l < labels.size(); ++l) needed += labels[l] == labels[l - 1];
  return needed <= steps_over(speech.frames(i), frames_per_step);
}

}  // namespace

SpeechDecoder::SpeechDecoder(const Alphabet& alphabet, const DecodingOptions& options)
    : alphabet_(alphabet), options_(options), words_(read_words(alphabet, options)) {}

std::string SpeechDecoder::text(const FrameScores& logits) const {
  if (options_.beam == 1) return single_spaced(alphabet_.text(greedy_decode(logits)));
  const std::vector<float> logs = log_probabilities(logits);
  const BeamResult best = beam_decode({logs.data(), logits.frames, logits.classes, logits.classes}, alphabet_,
                                      {.width = options_.beam,
                                       .words = words_ ? &*words_ : nullptr,
                                       .word_weight = options_.word_weight,
                                       .word_bonus = options_.word_bonus});
  return single_spaced(alphabet_.text(best.labels));
}

void HostLogits::take(Backend& backend, ConstView output, int64_t frames_per_step) {
  shape_ = output.shape;
  frames_per_step_ = frames_per_step;
  values_.resize(static_cast<size_t>(output.numel()));
  const size_t bytes = values_.size() * sizeof(float);
  const void* from = output.data;
  if (output.dtype != DType::f32) {
    std::byte* const converted = at_least(bytes, converted_, backend.device(), MemoryUse::other);
    backend.convert(output, {reinterpret_cast<float*>(converted), shape_});
    from = converted;
  }
  backend.device()->copy_out(values_.data(), from, bytes);
}

FrameScores HostLogits::of(int64_t stream, int64_t frames) const {
  return {values_.data() + stream * shape_[2], steps_over(frames, frames_per_step_), shape_[2], shape_[1] * shape_[2]};
}

SpeechScorer::SpeechScorer(const Speech& speech, const Network& network, Split split, const ScoringOptions& options)
    : speech_(speech),
      split_(split),
      frames_per_step_(network.loss().frames_per_step()),
      decoder_(speech.alphabet(), options.decoding),
      options_(options) {
  require_fitting_utterance(speech, network, split == Split::valid ? "validation" : "test");
}

void require_fitting_utterance(const Speech& speech, const Network& network, const std::string& set) {
  for (int64_t i = speech.size(); i-- > 0;) {  // the longest first
    if (fits(speech, i, network.loss().frames_per_step())) return;
  }
  throw_user_error(
      "the {} set: all utterances are too short for their transcripts ({} in all), as a character takes at least one "
      "step of the network; do the transcripts belong to these recordings? The longest: {}",
      set, speech.size(), speech.corpus().utterance(speech.size() - 1).name);
}

std::string remark_on_short_utterances(const Speech& speech, const Network& network, const std::string& set) {
  constexpr size_t kNamed = 3;
  int64_t count = 0;
  std::vector<std::string> named;
  for (int64_t i = 0; i < speech.size(); ++i) {
    if (fits(speech, i, network.loss().frames_per_step())) continue;
    if (++count; named.size() < kNamed) named.push_back(speech.corpus().utterance(i).name);
  }
  if (count == 0) return "";
  return fmt::format("the {} set: {} of {} utterances {} too short for {}, the shortest first: {}{}", set, count,
                     speech.size(), count == 1 ? "is" : "are", count == 1 ? "its transcript" : "their transcripts",
                     fmt::join(named, ", "), count > std::ssize(named) ? ", ..." : "");
}

Counts SpeechScorer::count(Backend& backend, const Batch& batch, ConstView output, const LossStats& stats) {
  logits_.take(backend, output, frames_per_step_);
  EditCount words, characters;
  for (size_t s = 0; s < batch.samples.size(); ++s) {
    const std::string heard = decoder_.text(logits_.of(static_cast<int64_t>(s), batch.lengths[s]));
    const std::string& said = speech_.corpus().utterance(batch.samples[s]).text;
    words += word_errors(said, heard);
    characters += character_errors(said, heard);
    if (options_.told && split_ == Split::test) options_.told(said, heard);
  }
  Counts counts{};
  counts[kUtterances] = static_cast<double>(batch.samples.size());
  counts[kLoss] = stats.loss;
  counts[kWithLoss] = stats.counts[kInLoss];
  counts[kWithoutLoss] = stats.counts[kTooShort];
  counts[kWords] = static_cast<double>(words.reference);
  counts[kWordErrors] = static_cast<double>(words.errors());
  counts[kCharacters] = static_cast<double>(characters.reference);
  counts[kCharacterErrors] = static_cast<double>(characters.errors());
  return counts;
}

Measures SpeechScorer::measures(const Counts& sums, const std::vector<std::string>& left_out) const {
  if (sums[kUtterances] == 0) {
    throw_user_error("data: not one of {} utterances can be read; of the first: {}", speech_.size(), left_out.at(0));
  }
  if (sums[kWithLoss] == 0) {  // not a loss that is no number, as a model that has diverged has
    throw_user_error("data: not one of {} utterances that can be read is long enough for its transcript{}",
                     sums[kUtterances], left_out.empty() ? "" : "; of the first that cannot be read: " + left_out[0]);
  }
  const double loss = sums[kLoss] / sums[kWithLoss];
  const double wer = error_rate(sums[kWordErrors], sums[kWords]);
  const double cer = error_rate(sums[kCharacterErrors], sums[kCharacters]);
  if (split_ == Split::valid)
    return {{&kValidLoss, loss}, {&kValidWordErrorRate, wer}, {&kValidCharacterErrorRate, cer}};
  return {{&kTestLoss, loss}, {&kWordErrorRate, wer}, {&kCharacterErrorRate, cer}, {&kLeftOut, sums[kWithoutLoss]}};
}

}  // namespace dgc
