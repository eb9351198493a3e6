#pragma once

#include <string>

namespace dgc {

// A number with its unit, as people write it on a command line. Both functions throw UserError that names `option`.

// "100Mbps", "2.5Gbps": bits per second, from 1 to 1e18. kbps, Mbps and Gbps are powers of ten.
double parse_bandwidth(const std::string& text, const std::string& option);
// "50us", "1.5ms", "2s": seconds, at least 0.
double parse_duration(const std::string& text, const std::string& option);

}  // namespace dgc
