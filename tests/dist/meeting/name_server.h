#pragma once

#include <atomic>
#include <string>

namespace dgc::test {

// Names about which getaddrinfo() asks a name server of the tests.
inline constexpr const char* kNameThatFailsLater = "later.test";  // 127.0.0.1 for so many answers, then it fails
inline constexpr const char* kNameThatHangs = "hangs.test";       // for as long as the test wants
inline constexpr const char* kNameOfTwo = "two.test";             // 127.0.0.1, and the address below
inline constexpr const char* kNoAddress = "10.0.0.999";           // no name server knows it
inline std::atomic<int> name_servers_answers = 0;
inline std::string second_address;
inline std::atomic<bool> name_server_hangs = false;

}  // namespace dgc::test
