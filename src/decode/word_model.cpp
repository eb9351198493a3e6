#include "decode/word_model.h"

#include <algorithm>

#include "decode/arpa.h"

namespace dgc {

WordModel::WordModel(const std::string& path) {
  nodes_.emplace_back();
  std::vector<int32_t> ids;
  order_ = read_arpa(path, [&](const ArpaEntry& entry) {
    ids.clear();
    for (const std::string& word : entry.words) {
      ids.push_back(words_.emplace(word, static_cast<int32_t>(words_.size())).first->second);
    }
    uint32_t node = kRoot;
    for (const int32_t word : ids) {
      const auto [at, fresh] = children_.emplace(key(node, word), static_cast<uint32_t>(nodes_.size()));
      if (fresh) nodes_.emplace_back();
      node = at->second;
    }
    nodes_[node] = {static_cast<float>(entry.log_probability), static_cast<float>(entry.log_backoff), true};
  });
}

bool WordModel::has_word(const std::function<bool(const std::string&)>& fits) const {
  return std::ranges::any_of(words_,
                             [&](const auto& word) { return !word.first.starts_with('<') && fits(word.first); });
}

uint64_t WordModel::key(uint32_t node, int32_t word) {
  return static_cast<uint64_t>(node) << 32 | static_cast<uint32_t>(word);
}

int32_t WordModel::id(std::string_view word) const {
  for (const std::string_view name : {word, std::string_view("<unk>"), std::string_view("<UNK>")}) {
    if (const auto found = words_.find(name); found != words_.end()) return found->second;
  }
  return kUnknown;
}

uint32_t WordModel::find(const int32_t* first, const int32_t* last) const {
  uint32_t node = kRoot;
  for (; first != last; ++first) {
    const auto next = children_.find(key(node, *first));
    if (next == children_.end()) return kNone;
    node = next->second;
  }
  return node;
}

double WordModel::score_id(const History& history, int32_t word) const {
  if (word == kUnknown) return kUnlisted;
  double backoff = 0;
  const int32_t* last = history.data() + history.size();
  for (const int32_t* first = history.data();; ++first) {
    const uint32_t context = find(first, last);
    if (context != kNone) {
      const auto found = children_.find(key(context, word));
      if (found != children_.end() && nodes_[found->second].listed) {
        return backoff + static_cast<double>(nodes_[found->second].log_probability);
      }
      backoff += static_cast<double>(nodes_[context].log_backoff);  // 0 where the context is not listed, as at the root
    }
    if (first == last) return kUnlisted;  // a word that only longer n-grams list
  }
}

double WordModel::score(const History& history, std::string_view word) const { return score_id(history, id(word)); }

double WordModel::end_score(const History& history) const {
  const auto end = words_.find("</s>");
  return end != words_.end() ? score_id(history, end->second) : 0;
}

WordModel::History WordModel::begin() const {
  const auto start = words_.find("<s>");
  return start != words_.end() && order_ > 1 ? History{start->second} : History{};
}

WordModel::History WordModel::after(const History& history, std::string_view word) const {
  History next = history;
  next.push_back(id(word));
  const auto most = static_cast<size_t>(order_ - 1);
  if (next.size() > most) next.erase(next.begin(), next.end() - static_cast<int64_t>(most));
  return next;
}

}  // namespace dgc
