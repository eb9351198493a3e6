#include "decode/error_rate.h"

#include <algorithm>
#include <vector>

#include "data/speech/alphabet.h"
#include "tensor/utf8.h"

namespace dgc {
namespace {

using Parts = std::vector<std::string_view>;

Parts words(std::string_view clean) {
  Parts out;
  while (!clean.empty()) {
    const size_t end = std::min(clean.find(' '), clean.size());
    out.push_back(clean.substr(0, end));
    clean.remove_prefix(std::min(end + 1, clean.size()));
  }
  return out;
}

EditCount with(EditCount count, int64_t EditCount::*kind) {
  ++(count.*kind);
  return count;
}

// Computes Levenshtein's table, a row at a time. Of equally short ways, substitutions are taken before deletions, and
// deletions before insertions.
EditCount edits(const Parts& reference, const Parts& hypothesis) {
  std::vector<EditCount> row(hypothesis.size() + 1);
  for (size_t j = 1; j < row.size(); ++j) row[j] = with(row[j - 1], &EditCount::insertions);
  for (const std::string_view part : reference) {
    EditCount diagonal = row[0];
    row[0] = with(row[0], &EditCount::deletions);
    for (size_t j = 1; j < row.size(); ++j) {
      EditCount best = part == hypothesis[j - 1] ? diagonal : with(diagonal, &EditCount::substitutions);
      const EditCount deleted = with(row[j], &EditCount::deletions);
      const EditCount inserted = with(row[j - 1], &EditCount::insertions);
      if (deleted.errors() < best.errors()) best = deleted;
      if (inserted.errors() < best.errors()) best = inserted;
      diagonal = row[j];
      row[j] = best;
    }
  }
  row.back().reference = static_cast<int64_t>(reference.size());
  return row.back();
}

}  // namespace

double error_rate(double errors, double reference) { return errors / std::max(reference, 1.0); }

EditCount& EditCount::operator+=(const EditCount& other) {
  substitutions += other.substitutions;
  insertions += other.insertions;
  deletions += other.deletions;
  reference += other.reference;
  return *this;
}

EditCount word_errors(std::string_view reference, std::string_view hypothesis) {
  const std::string a = single_spaced(reference), b = single_spaced(hypothesis);
  return edits(words(a), words(b));
}

EditCount character_errors(std::string_view reference, std::string_view hypothesis) {
  const std::string a = single_spaced(reference), b = single_spaced(hypothesis);
  return edits(utf8_characters(a), utf8_characters(b));
}

}  // namespace dgc
