#pragma once

#include <string>

#include "tests/data/fixtures.h"

namespace dgc {

inline std::string write_arpa(const TempFolder& folder, const std::string& text) {
  return folder.write("model.arpa", Bytes(text.begin(), text.end()));
}

inline const std::string kSmallModel =
    "made by hand\n\n"
    "\\data\\\nngram 1=6\nngram 2=3\nngram 3=1\n\n"
    "\\1-grams:\n-99\t<s>\t-0.7\n-0.8\t</s>\n-2.0\t<unk>\n-0.6\tGO\t-0.5\n-0.7\tON\t-0.25\n-0.9\tSTOP\n\n"
    "\\2-grams:\n-0.2\t<s> GO\t-0.15\n-0.3\tGO ON\n-0.4\tON </s>\n\n"
    "\\3-grams:\n-0.1\t<s> GO ON\n\n"
    "\\end\\\n";

}  // namespace dgc
