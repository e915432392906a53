package cli

import "testing"

// A slip is told with the verb that was meant, where only one can be; a verb of a noun with its noun.
func TestUnknownVerbs(t *testing.T) {
	root := (&app{}).root()
	for word, want := range map[string]string{
		"statsu": "; did you mean: muster status?",
		"stats":  "; did you mean: muster status?",
		"joinn":  "; did you mean: muster join?",
		"ip":     "",
		"remove": "; there is: muster node remove",
		"frob":   "",
		"bored":  "",
		"bord":   "; did you mean: muster board?",
	} {
		said := `unknown command "` + word + `" for "muster"`
		if got := unknownVerb(root, said+"\n\nDid you mean this?\n\tnothing"); got != said+want {
			t.Errorf("%s: %s", word, got)
		}
	}
}

// What a hint says works as it stands, for the node that the call named by its folder; what is for another machine stays as it is.
func TestHintsNameTheFolder(t *testing.T) {
	a := &app{}
	a.root()
	const hint = "see: muster status; there: muster join -; muster node drain atlas; of muster there is no more; (muster why d-1)"
	if got := a.here(hint); got != hint {
		t.Errorf("without --data: %s", got)
	}
	a.data, a.dataSet = "/x/a b", true
	const want = "see: muster --data '/x/a b' status; there: muster join -; muster --data '/x/a b' node drain atlas; of muster there is no more; (muster --data '/x/a b' why d-1)"
	if got := a.here(hint); got != want {
		t.Errorf("with --data: %s", got)
	}
}
