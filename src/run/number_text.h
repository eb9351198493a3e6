#pragma once

#include <string>

// Numbers as text for people. NaN and infinity become an en dash.
namespace dgc {

std::string bytes_text(double bytes);       // "512 B", "3.07 KiB", "97.5 MiB"
std::string percent_text(double share);     // 0.91234 -> "91.23 %"
std::string ratio_text(double ratio);       // "597.7x", "1.00x"
std::string duration_text(double seconds);  // "95 s", "14 min", "2 h 05 min"
std::string rate_text(double per_second);   // "0.53", "8.1", "712", "12,345"
std::string count_text(double count);       // 1234567 -> "1,234,567"
std::string loss_text(double loss);         // four decimals, or an exponent when it is far away
std::string perplexity_text(double words);  // "114.53", "9.91e+05"

}  // namespace dgc
