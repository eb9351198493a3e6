#include "decode/arpa.h"

#include <charconv>
#include <cmath>
#include <numbers>
#include <sstream>
#include <string_view>

#include "data/file.h"
#include "tensor/counted.h"
#include "tensor/errors.h"

namespace dgc {
namespace {

template <typename T>
bool parse(std::string_view text, T& out) {
  const auto end = std::from_chars(text.data(), text.data() + text.size(), out);
  return end.ec == std::errc{} && end.ptr == text.data() + text.size();
}

// Takes a file line by line: a preamble before \data\, the counts, the sections \1-grams: ... in turn, and \end\.
class ArpaParser {
 public:
  ArpaParser(const std::string& path, const std::function<void(const ArpaEntry&)>& entry)
      : path_(path), entry_(entry) {}

  void line(const std::string& text, const std::string& where) {
    fields_.clear();
    std::istringstream stream(text);
    for (std::string field; stream >> field;) fields_.push_back(std::move(field));
    if (fields_.empty() || ended_) return;
    const std::string& first = fields_.front();
    if (section_ == kPreamble) {
      if (first == "\\data\\") section_ = kCounts;
    } else if (first == "\\end\\") {
      finish_section();
      if (section_ != static_cast<int>(counts_.size())) fail(where, "an n-gram section is missing before \\end\\");
      ended_ = true;
    } else if (first.starts_with('\\') && first.ends_with("-grams:")) {
      begin_section(first, where);
    } else if (section_ == kCounts) {
      count(where);
    } else {
      ngram(where);
    }
  }

  int finish() {
    if (section_ == kPreamble) throw_user_error("{}: it has no line \\data\\, so this is no ARPA file", path_);
    if (!ended_) throw_user_error("{}: it ends without \\end\\; the file is truncated", path_);
    return static_cast<int>(counts_.size());
  }

 private:
  static constexpr int kPreamble = -1, kCounts = 0;

  [[noreturn]] static void fail(const std::string& where, const char* what) { throw_user_error("{}: {}", where, what); }

  // "ngram 2=4012", or "ngram 2=   4012"
  void count(const std::string& where) {
    const bool has_gap = fields_.size() == 3 && fields_[1].ends_with('=');
    const std::string field = has_gap ? fields_[1] + fields_[2] : fields_.size() == 2 ? fields_[1] : "";
    const size_t equals = field.find('=');
    size_t order = 0, number = 0;
    if (fields_[0] != "ngram" || equals == std::string::npos || !parse(field.substr(0, equals), order) ||
        !parse(field.substr(equals + 1), number) || order != counts_.size() + 1) {
      fail(where, "a count like \"ngram 1=1000\" is expected, of each order in turn");
    }
    counts_.push_back(number);
  }

  void begin_section(const std::string& title, const std::string& where) {
    finish_section();
    if (title != fmt::format("\\{}-grams:", section_ + 1) || section_ >= static_cast<int>(counts_.size())) {
      fail(where, "the n-gram sections must follow each other as \\data\\ lists them");
    }
    ++section_;
    seen_ = 0;
  }

  void finish_section() const {
    if (section_ == kCounts || seen_ == counts_[static_cast<size_t>(section_) - 1]) return;
    throw_user_error("{}: it has {} {}-grams, but promises {}", path_, seen_, section_,
                     counts_[static_cast<size_t>(section_) - 1]);
  }

  // "-1.2041 THE CAT -0.3010"; the last number may be missing.
  void ngram(const std::string& where) {
    const auto order = static_cast<size_t>(section_);
    double probability = 0, backoff = 0;
    const bool has_backoff = fields_.size() == order + 2;
    if (!(fields_.size() == order + 1 || has_backoff) || !parse(fields_[0], probability) ||
        (has_backoff && !parse(fields_.back(), backoff)) || !std::isfinite(probability) || !std::isfinite(backoff) ||
        probability > 0) {
      throw_user_error("{}: log10 of a probability, {} and perhaps a back-off are expected", where,
                       counted(section_, "word"));
    }
    current_.words.assign(fields_.begin() + 1, fields_.begin() + 1 + section_);
    current_.log_probability = probability * std::numbers::ln10;
    current_.log_backoff = backoff * std::numbers::ln10;
    ++seen_;
    entry_(current_);
  }

  const std::string& path_;
  const std::function<void(const ArpaEntry&)>& entry_;
  std::vector<std::string> fields_;
  std::vector<size_t> counts_;
  int section_ = kPreamble;
  size_t seen_ = 0;
  bool ended_ = false;
  ArpaEntry current_;
};

}  // namespace

int read_arpa(const std::string& path, const std::function<void(const ArpaEntry&)>& entry) {
  ArpaParser parser(path, entry);
  for_each_line(path, "give a word n-gram model in ARPA's format",
                [&](const std::string& line, const std::string& where) { parser.line(line, where); });
  return parser.finish();
}

}  // namespace dgc
