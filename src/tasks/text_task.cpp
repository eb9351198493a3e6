#include <algorithm>
#include <cmath>
#include <limits>

#include "data/text/text.h"
#include "run/vocabulary_file.h"
#include "tasks/task.h"
#include "tensor/counted.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

class TextScorer final : public Scorer {
 public:
  TextScorer(int64_t words, Split split) : words_(static_cast<double>(words)), split_(split) {}

  Measures measures(const Counts& sums, const std::vector<std::string>&) const override {
    const double loss = sums[0] / words_;
    if (split_ == Split::valid) return {{&kValidLoss, loss}, {&kValidPerplexity, std::exp(loss)}};
    return {{&kTestLoss, loss},
            {&kTestAccuracy, sums[1 + kFirst] / words_},
            {&kTestTop5, sums[1 + kTopFive] / words_},
            {&kTestPerplexity, std::exp(loss)}};
  }

 private:
  double words_;
  Split split_;
};

class TextTask final : public Task {
 public:
  const char* samples() const override { return "words"; }
  std::string batch_text(const Config& config) const override {
    return counted(config.training.batch_per_worker, "stream") + " of " + counted(config.data.text.bptt, "word");
  }
  std::string size_text(const Datasets& sets) const override {
    return fmt::format("words, a vocabulary of {}", sets.vocabulary->size());
  }

  Datasets open(const Config& config) const override {
    const TextDataOptions& o = config.data.text;
    Datasets sets;
    sets.vocabulary = o.vocabulary.empty() ? build_vocabulary({o.train, "data.train"}, o.vocabulary_size)
                                           : read_vocabulary({o.vocabulary, "data.vocabulary"});
    sets.train = std::make_unique<Text>(TextOptions{.file = {o.train, "data.train"},
                                                    .trains = true,
                                                    .streams = config.training.micro_batch(),
                                                    .limit = config.data.train_limit},
                                        *sets.vocabulary);
    open_evaluated(config, sets);
    require_alike(*sets.train, *sets.valid, "validation", "data.valid");
    require_alike(*sets.train, *sets.test, "test", "data.test");
    return sets;
  }
  Datasets open_to_evaluate(const Config& config, const std::filesystem::path& run) const override {
    Datasets sets;
    sets.vocabulary = run_vocabulary(run);
    open_evaluated(config, sets);
    return sets;
  }
  Config completed(Config config, const Datasets& sets) const override {
    if (config.model.lstm.vocabulary == 0) config.model.lstm.vocabulary = sets.vocabulary->size();
    return config;
  }
  void require_classes(const Config&, int64_t classes, const Dataset& data) const override {
    if (classes >= data.classes()) return;
    throw_user_error("model.vocabulary: {}, but the data has {} words; set it to that, or to 0", classes,
                     data.classes());
  }

  Shape sample(const Config& config, Split split) const override {
    return {split == Split::train ? config.training.micro_batch() : config.data.text.eval_streams};
  }
  int64_t most_rows(const Config& config, Split split) const override {
    if (split == Split::train) return rows_per_micro_batch(config);
    return std::min(config.training.eval_batch, config.data.test_limit.value_or(std::numeric_limits<int64_t>::max()));
  }
  int64_t rows_per_micro_batch(const Config& config) const override { return config.data.text.bptt; }
  int64_t samples_per_step(const Config& config) const override {
    return config.training.batch_per_worker * config.data.text.bptt;
  }
  std::string after_redistribution(int64_t) const override {
    return "and each stream of text goes on there, from a state of zero";
  }

  std::unique_ptr<Scorer> make_scorer(const Dataset& data, const Network&, Split split,
                                      const ScoringOptions&) const override {
    return std::make_unique<TextScorer>(data.size(), split);
  }
  void require_logits() const override {
    throw_user_error("--logits is for images: of a text they would be as many as words times the vocabulary");
  }
  Compared compared() const override {
    return {{&kTestPerplexity, &kValidPerplexity}, &kValidPerplexity, &kTestPerplexity};
  }

 private:
  static void open_evaluated(const Config& config, Datasets& sets) {
    const TextDataOptions& o = config.data.text;
    const auto open = [&](const TextFile& file) {
      const TextOptions options{.file = file, .streams = o.eval_streams, .limit = config.data.test_limit};
      return std::make_unique<Text>(options, *sets.vocabulary);
    };
    sets.valid = open({o.valid, "data.valid"});
    sets.test = open({o.test, "data.test"});
  }
};

}  // namespace

const Task& text_task() {
  static const TextTask task;
  return task;
}

}  // namespace dgc
