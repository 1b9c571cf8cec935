package completion

import (
	"fmt"
	"io"
)

// Bash writes the script for bash. To bash a word may begin within one of ours, after an @, a
// colon or an equals sign: the part before is left out of its answers.
func Bash(w io.Writer) error {
	_, err := fmt.Fprint(w, `_wsmount() {
    local cur=${COMP_WORDS[COMP_CWORD]} line=${COMP_LINE:0:$COMP_POINT} word= rest= c= before= files=
    word=${line##*[[:space:]]} rest=$word
    for c in '@' ':' '='; do [[ ${COMP_WORDBREAKS-} == *$c* ]] && rest=${rest##*$c}; done
    before=${word%"$rest"}
    COMPREPLY=()
    while IFS= read -r word; do
        word=${word%%$'\t'*}
        if [[ -n $word ]]; then COMPREPLY+=("${word#"$before"}"); else files=1; fi
    done < <(wsmount completion words -- "$line" 2>/dev/null)
    if [[ -n $files ]]; then
        while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$cur")
    fi
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == */ ]] && type compopt >/dev/null 2>&1; then compopt -o nospace; fi
    return 0
}
complete -o filenames -F _wsmount wsmount
`)
	return err
}

// Zsh writes the script for zsh: it lets zsh run bash's. Where the script lies as _wsmount among the
// shell's functions, zsh runs it as that function at the first question, which it
// has to answer then.
func Zsh(w io.Writer) error {
	fmt.Fprintln(w, "#compdef wsmount\nautoload -U +X bashcompinit && bashcompinit")
	err := Bash(w)
	fmt.Fprintln(w, `[[ ${funcstack[1]-} != _wsmount ]] || _bash_complete -o filenames -F _wsmount`)
	return err
}

// Fish writes the script for fish.
func Fish(w io.Writer) error {
	_, err := fmt.Fprint(w, `function __wsmount_words
    for word in (wsmount completion words -- (commandline -cp | string collect) 2>/dev/null)
        if test -n "$word"
            echo $word
        else
            __fish_complete_path (commandline -ct)
        end
    end
end
complete -c wsmount -f -a '(__wsmount_words)'
`)
	return err
}
