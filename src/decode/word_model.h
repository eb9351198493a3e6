#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace dgc {

// A word n-gram model with back-off, from a file in ARPA's format (D. Paul, J. Baker, "The design for the Wall Street
// Journal-based CSR corpus", 1992; also gzipped): the probability of a word after a history h is the listed one of "h
// word", or else backoff(h) times the one after h without its first word, backoff(h) being 1 where it is not listed.
class WordModel {
 public:
  // Throws UserError as read_arpa() does.
  explicit WordModel(const std::string& path);

  int order() const { return order_; }
  // Whether some word, but for those in angle brackets such as <unk>, fits.
  bool has_word(const std::function<bool(const std::string&)>& fits) const;

  // The words said so far: the last order() - 1 at most.
  using History = std::vector<int32_t>;
  History begin() const;  // the history at the beginning of a sentence

  // ln P(word | history). A word that is not listed scores as <unk>, or kUnlisted in a model without <unk>.
  double score(const History&, std::string_view word) const;
  double end_score(const History&) const;  // ln P(</s> | history); 0 where the model has no </s>
  History after(const History&, std::string_view word) const;

  static constexpr double kUnlisted = -23.025850929940457;  // ln 1e-10

 private:
  // An n-gram is a path from the root along its words.
  struct Node {
    float log_probability = 0, log_backoff = 0;  // natural logarithms
    bool listed = false;                         // false: only a longer n-gram's beginning
  };
  static constexpr uint32_t kRoot = 0, kNone = UINT32_MAX;
  static constexpr int32_t kUnknown = -1;

  static uint64_t key(uint32_t node, int32_t word);
  int32_t id(std::string_view word) const;
  uint32_t find(const int32_t* first, const int32_t* last) const;
  double score_id(const History&, int32_t word) const;

  int order_ = 0;
  std::map<std::string, int32_t, std::less<>> words_;
  std::vector<Node> nodes_;
  std::unordered_map<uint64_t, uint32_t> children_;  // key() -> node
};

}  // namespace dgc
