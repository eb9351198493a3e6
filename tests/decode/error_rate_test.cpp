#include "decode/error_rate.h"

#include <catch.hpp>
#include <string>

#include "tensor/rng.h"

namespace dgc {
namespace {

// The fewest edits, by trying everything.
int64_t fewest(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty()) return static_cast<int64_t>(a.size() + b.size());
  if (a.front() == b.front()) return fewest(a.substr(1), b.substr(1));
  return 1 + std::min({fewest(a.substr(1), b.substr(1)), fewest(a.substr(1), b), fewest(a, b.substr(1))});
}

TEST_CASE("error rates: by hand") {
  CHECK(word_errors("THE CAT SAT", "THE CAT SAT") == EditCount{0, 0, 0, 3});
  CHECK(word_errors("THE CAT SAT", "THE BAT SAT") == EditCount{1, 0, 0, 3});
  CHECK(word_errors("THE CAT SAT", "THE SAT") == EditCount{0, 0, 1, 3});
  CHECK(word_errors("THE CAT SAT", "OH THE CAT SAT DOWN") == EditCount{0, 2, 0, 3});
  CHECK(word_errors("A B C D", "B X D") == EditCount{1, 0, 1, 4});
  CHECK(word_errors("GO", "") == EditCount{0, 0, 1, 1});
  CHECK(word_errors("", "GO ON") == EditCount{0, 2, 0, 0});
  CHECK(word_errors(" THE  CAT ", "THE CAT") == EditCount{0, 0, 0, 2});
  CHECK(character_errors("THE CAT", "THECAT") == EditCount{0, 0, 1, 7});
  CHECK(character_errors("KITTEN", "SITTING") == EditCount{2, 1, 0, 6});
  CHECK(character_errors("AB", "BA") == EditCount{2, 0, 0, 2});  // as short a way as a deletion and an insertion
  CHECK(character_errors("\xc3\xa4\xc3\xb6", "a\xc3\xb6") == EditCount{1, 0, 0, 2});  // a character of two bytes is one
}

TEST_CASE("error rates: of a set, sums over sums") {
  EditCount sum;
  sum += word_errors("A B C", "A C");
  sum += word_errors("D", "E F");
  CHECK(sum == EditCount{1, 1, 1, 4});
  CHECK(error_rate(static_cast<double>(sum.errors()), static_cast<double>(sum.reference)) == 0.75);
  CHECK(error_rate(0, 0) == 0);
  CHECK(error_rate(2, 0) == 2);
}

TEST_CASE("error rates: brute force") {
  for (uint64_t i = 0; i < 200; ++i) {
    const Philox rng(5, i);
    std::string a, b;
    for (uint32_t j = 0; j < rng.below(0, 7); ++j) a += static_cast<char>('A' + rng.below(10 + j, 3));
    for (uint32_t j = 0; j < rng.below(1, 7); ++j) b += static_cast<char>('A' + rng.below(20 + j, 3));
    CAPTURE(a, b);
    const EditCount count = character_errors(a, b);
    CHECK(count.errors() == fewest(a, b));
    CHECK(count.reference == std::ssize(a));
    CHECK(std::ssize(a) + count.insertions - count.deletions == std::ssize(b));
  }
}

}  // namespace
}  // namespace dgc
