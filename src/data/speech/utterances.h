#pragma once

#include <string>

namespace dgc {

// One recording, as a corpus lists it.
struct Utterance {
  std::string name;  // for messages: where it is listed, and as what
  std::string path;  // path of the sound file
  std::string text;
  double seconds = 0;  // length as listed; 0: not known
};

}  // namespace dgc
