#pragma once

#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

// The metrics that evaluations measure, each spelled once: rows of metrics.jsonl, tables, plots, TensorBoard and the
// terminal take names and units from here.
namespace dgc {

inline constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

struct Metric {
  enum class Unit { loss, share, perplexity, count };  // share: 0 ... 1, shown as per cent; an error rate may exceed 1

  const char* key;   // the key in a row of metrics.jsonl
  const char* name;  // the name that people read
  const char* tag;   // the tag of the TensorBoard curve
  Unit unit;

  std::string text(double value) const;  // "91.23 %"; an en dash when it is not finite
  // Whether the value, of a loss or a perplexity, is not finite, which says that the model has most likely diverged.
  bool is_lost(double value) const;
};

inline constexpr Metric kTestLoss = {"test_loss", "test loss", "test/loss", Metric::Unit::loss};
inline constexpr Metric kTestAccuracy = {"test_accuracy", "test accuracy", "test/accuracy", Metric::Unit::share};
inline constexpr Metric kTestTop5 = {"test_top5", "test top-5", "test/top5", Metric::Unit::share};
// Where there is a validation set, its loss steers a plateau schedule of the learning rate.
inline constexpr Metric kValidLoss = {"valid_loss", "validation loss", "valid/loss", Metric::Unit::loss};
inline constexpr Metric kValidAccuracy = {"valid_accuracy", "validation accuracy", "valid/accuracy",
                                          Metric::Unit::share};
inline constexpr Metric kValidTop5 = {"valid_top5", "validation top-5", "valid/top5", Metric::Unit::share};
// e^loss: the number of equally likely words among which a guess would have the same loss.
inline constexpr Metric kValidPerplexity = {"valid_perplexity", "validation perplexity", "valid/perplexity",
                                            Metric::Unit::perplexity};
inline constexpr Metric kTestPerplexity = {"test_perplexity", "test perplexity", "test/perplexity",
                                           Metric::Unit::perplexity};
// Word errors over words that were said, and character errors over characters that were said.
inline constexpr Metric kWordErrorRate = {"wer", "test word error rate", "test/wer", Metric::Unit::share};
inline constexpr Metric kCharacterErrorRate = {"cer", "test character error rate", "test/cer", Metric::Unit::share};
inline constexpr Metric kValidWordErrorRate = {"valid_wer", "validation word error rate", "valid/wer",
                                               Metric::Unit::share};
inline constexpr Metric kValidCharacterErrorRate = {"valid_cer", "validation character error rate", "valid/cer",
                                                    Metric::Unit::share};
// Utterances that the test loss leaves out, as they are too short for their transcripts.
inline constexpr Metric kLeftOut = {"left_out", "utterances not in the loss", "test/left_out", Metric::Unit::count};

// All metrics, in the order in which a row lists them.
std::span<const Metric* const> all_metrics();

// What one evaluation has measured, in the order of all_metrics(). A value is NaN where the model has diverged.
class Measures {
 public:
  using Measure = std::pair<const Metric*, double>;
  Measures() = default;
  Measures(std::initializer_list<Measure> measures);

  void set(const Metric&, double value);  // throws InternalError where all_metrics() lacks it
  void set(const Measures&);
  bool has(const Metric&) const;
  double operator[](const Metric&) const;  // NaN where it was not measured
  std::vector<Measure>& all() { return measures_; }
  const std::vector<Measure>& all() const { return measures_; }

 private:
  std::vector<Measure> measures_;
};

}  // namespace dgc
