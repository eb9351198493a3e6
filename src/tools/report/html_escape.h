#pragma once

#include <string>
#include <string_view>

namespace dgc {

// Text of a run, as HTML shows it and never runs it: within an element, or within an attribute's quotes.
std::string html_escape(std::string_view text);

}  // namespace dgc
