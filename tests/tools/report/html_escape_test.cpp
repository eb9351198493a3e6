#include "tools/report/html_escape.h"

#include <catch.hpp>

namespace dgc {

TEST_CASE("names cannot become markup") {
  CHECK(html_escape("<b a=\"1\" c='2'>&amp;") == "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;");
}

}  // namespace dgc
