#include "decode/beam.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "tensor/errors.h"

namespace dgc {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

double log_add(double a, double b) {
  const double high = std::max(a, b), low = std::min(a, b);
  return low == kNever ? high : high + std::log1p(std::exp(low - high));
}

// Prefixes are paths from the root of a tree. What the word model says of a prefix is kept with the prefix.
struct Prefix {
  int32_t parent = -1, label = kBlank;
  std::string word;            // the last, unfinished word
  WordModel::History history;  // history of the finished words
  double words = 0;            // what the finished words add to the score
};

// Log probabilities of all alignments that give the prefix, split by their last frame: a blank or a label.
struct Mass {
  double blank = kNever, label = kNever;
  double total() const { return log_add(blank, label); }
};

// A prefix as its parent and last label, which can also name a prefix that is not in the tree. Only prefixes that stay
// in the beam get into the tree.
using Key = std::pair<int32_t, int32_t>;
constexpr Key kRoot{-1, kBlank};

struct Candidate {
  Mass mass;
  double words = 0;  // as Prefix::words
};

struct Entry {
  int32_t prefix;
  Mass mass;
};

class Search {
 public:
  Search(const Alphabet& alphabet, const BeamOptions& options)
      : alphabet_(alphabet), options_(options), space_(alphabet.space().value_or(kBlank)) {
    DGC_CHECK(options.width >= 1, "a beam's width");
    DGC_CHECK(options.words == nullptr || alphabet.space(), "a word model needs a space in the alphabet");
    Prefix root;
    if (options.words != nullptr) root.history = options.words->begin();
    prefixes_.push_back(std::move(root));
    numbers_[kRoot] = 0;
    beam_.push_back({0, {0, kNever}});
  }

  void step(const float* row, int64_t classes) {
    next_.clear();
    const double least = static_cast<double>(*std::max_element(row, row + classes)) - options_.class_margin;
    for (const Entry& entry : beam_) {
      const int32_t last = at(entry.prefix).label;
      for (int32_t c = 0; c < classes; ++c) {
        const double p = row[c];
        // The blank is always tried: the word model may refuse the only other class, a space where no word has begun.
        if (!(p >= (c == kBlank ? kNever : least)) || p == kNever) continue;
        if (c == kBlank) {
          stay(entry.prefix, &Mass::blank, p + entry.mass.total());
        } else if (c == last) {
          stay(entry.prefix, &Mass::label, p + entry.mass.label);
          extend(entry.prefix, c, p + entry.mass.blank);
        } else {
          extend(entry.prefix, c, p + entry.mass.total());
        }
      }
    }
    keep_best();
  }

  BeamResult best() const {
    BeamResult out;
    out.score = kNever;
    int32_t winner = 0;
    for (const Entry& entry : beam_) {
      const double score = entry.mass.total() + ending(at(entry.prefix));
      if (score > out.score) std::tie(out.score, winner) = std::pair(score, entry.prefix);
    }
    for (int32_t p = winner; p > 0; p = at(p).parent) out.labels.push_back(at(p).label);
    std::reverse(out.labels.begin(), out.labels.end());
    return out;
  }

 private:
  double word_score(const Prefix& prefix) const {
    return options_.word_weight * options_.words->score(prefix.history, prefix.word) + options_.word_bonus;
  }

  double ending(const Prefix& prefix) const {
    if (options_.words == nullptr) return 0;
    const WordModel& model = *options_.words;
    if (prefix.word.empty()) return prefix.words + options_.word_weight * model.end_score(prefix.history);
    return prefix.words + word_score(prefix) +
           options_.word_weight * model.end_score(model.after(prefix.history, prefix.word));
  }

  const Prefix& at(int32_t prefix) const { return prefixes_[static_cast<size_t>(prefix)]; }

  void stay(int32_t prefix, double Mass::*kind, double log_probability) {
    if (log_probability == kNever) return;
    const Prefix& p = at(prefix);
    Candidate& candidate = next_[{p.parent, p.label}];
    candidate.words = p.words;
    candidate.mass.*kind = log_add(candidate.mass.*kind, log_probability);
  }

  void extend(int32_t prefix, int32_t label, double log_probability) {
    if (log_probability == kNever) return;
    const Prefix& parent = at(prefix);
    if (ends_word(label) && parent.word.empty()) return;
    const auto [place, fresh] = next_.try_emplace({prefix, label});
    Candidate& candidate = place->second;
    if (fresh) candidate.words = parent.words + (ends_word(label) ? word_score(parent) : 0);
    candidate.mass.label = log_add(candidate.mass.label, log_probability);
  }

  bool ends_word(int32_t label) const { return options_.words != nullptr && label == space_; }

  // Ranks candidates by mass and finished words, and equal ones by their keys, so that the result is defined.
  void keep_best() {
    ranking_.clear();
    for (const auto& [key, candidate] : next_) ranking_.emplace_back(-candidate.mass.total() - candidate.words, key);
    const auto keep = std::min(options_.width, std::ssize(ranking_));
    std::partial_sort(ranking_.begin(), ranking_.begin() + keep, ranking_.end());
    beam_.clear();
    for (int64_t i = 0; i < keep; ++i) {
      const Key key = ranking_[static_cast<size_t>(i)].second;
      const Candidate& candidate = next_.at(key);
      beam_.push_back({number_of(key, candidate.words), candidate.mass});
    }
  }

  // The number of a prefix in the tree, to which a new prefix is added.
  int32_t number_of(const Key& key, double words) {
    const auto [place, fresh] = numbers_.emplace(key, static_cast<int32_t>(prefixes_.size()));
    if (!fresh) return place->second;
    Prefix child = at(key.first);
    child.parent = key.first;
    child.label = key.second;
    child.words = words;
    if (ends_word(child.label)) {
      child.history = options_.words->after(child.history, child.word);
      child.word.clear();
    } else if (options_.words != nullptr) {
      child.word += alphabet_.character(child.label);
    }
    prefixes_.push_back(std::move(child));
    return place->second;
  }

  const Alphabet& alphabet_;
  const BeamOptions& options_;
  int32_t space_;
  std::vector<Prefix> prefixes_;
  std::map<Key, int32_t> numbers_;
  std::vector<Entry> beam_;
  std::map<Key, Candidate> next_;
  std::vector<std::pair<double, Key>> ranking_;
};

}  // namespace

BeamResult beam_decode(const FrameScores& scores, const Alphabet& alphabet, const BeamOptions& options) {
  DGC_CHECK(scores.classes == alphabet.classes(), "a score for each class");
  Search search(alphabet, options);
  for (int64_t t = 0; t < scores.frames; ++t) search.step(scores.row(t), scores.classes);
  return search.best();
}

}  // namespace dgc
