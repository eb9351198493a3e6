#pragma once

#include <string>
#include <vector>

namespace dgc {

// A word that other programs have for a key: PyTorch's, mostly.
struct Synonym {
  const char *word, *key;  // the last name of what somebody writes; a path of config_keys() or of layer_keys()
};
const std::vector<Synonym>& synonyms();

// The first of `paths` in the order of synonyms() that a synonym stands for; "" where it stands for none of them.
std::string key_of_synonym(const std::string& word, const std::vector<std::string>& paths);

// The path of the key of a config that has this word as a synonym, as its path, or, alone among all keys, as its last
// name; "" where none has. Dashes count as underscores, as in options of a command line.
std::string key_called(std::string word);

}  // namespace dgc
