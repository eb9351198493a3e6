#include <algorithm>

#include "config/data_types.h"
#include "tasks/make_speech.h"
#include "tasks/speech_scorer.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

class SpeechTask : public Task {
 public:
  const char* samples() const override { return "utterances"; }

  Datasets open(const Config& config) const override {
    auto train = make_speech(config, Split::train);  // the first to complain
    return alike(std::move(train), make_speech(config, Split::test));
  }
  Datasets open_to_evaluate(const Config& config, const std::filesystem::path&) const override {
    Datasets sets;
    sets.test = make_speech(config, Split::test);
    return sets;
  }

  void require_learnable(const Network& network, const Dataset& train) const override {
    require_fitting_utterance(dynamic_cast<const Speech&>(train), network, "training");
  }

  std::vector<std::string> remarks(const Config&, const Network& network, const Datasets& sets) const override {
    std::vector<std::string> found;
    for (const auto& [set, name] : named_sets(sets)) {
      std::string remark = remark_on_short_utterances(dynamic_cast<const Speech&>(*set), network, name);
      if (!remark.empty()) found.push_back(std::move(remark));
    }
    return found;
  }

  Shape sample(const Config& config, Split split) const override {
    const TrainingOptions& o = config.training;
    if (split == Split::train) return speech_sample(config, o.micro_batch());
    const bool limited = split == Split::test && config.data.test_limit;
    return speech_sample(config, limited ? std::min(o.eval_batch, *config.data.test_limit) : o.eval_batch);
  }
  int64_t most_rows(const Config& config, Split split) const override { return most_frames(config, split); }
  // Frames lie 10 ms apart unless the config says otherwise, and English has some 15 letters a second.
  int64_t most_labels(const Config& config) const override { return most_rows(config, Split::train) * 15 / 100; }
  std::string after_redistribution(int64_t) const override { return "and the rest of it comes in another order"; }

  std::unique_ptr<Scorer> make_scorer(const Dataset& data, const Network& network, Split split,
                                      const ScoringOptions& options) const override {
    return std::make_unique<SpeechScorer>(dynamic_cast<const Speech&>(data), network, split, options);
  }
  bool has_texts() const override { return true; }
  void require_logits() const override {
    throw_user_error("--logits is for images: utterances have as many logits as they have frames");
  }
  Compared compared() const override {
    return {{&kWordErrorRate, &kCharacterErrorRate}, &kWordErrorRate, &kWordErrorRate};
  }
};

class ValidatedSpeechTask final : public SpeechTask {
 public:
  Datasets open(const Config& config) const override {
    Datasets sets = SpeechTask::open(config);
    sets.valid = make_speech(config, Split::valid);  // a part of the training list, so it need not be compared
    return sets;
  }
  Datasets open_to_evaluate(const Config& config, const std::filesystem::path& run) const override {
    Datasets sets = SpeechTask::open_to_evaluate(config, run);
    sets.valid = make_speech(config, Split::valid);
    return sets;
  }
  Compared compared() const override {
    return {{&kWordErrorRate, &kCharacterErrorRate, &kValidWordErrorRate}, &kValidWordErrorRate, &kWordErrorRate};
  }
};

}  // namespace

const Task& speech_task(const Config& config) {
  static const SpeechTask plain;
  static const ValidatedSpeechTask validated;
  return has_validation_set(config.data) ? validated : plain;
}

}  // namespace dgc
