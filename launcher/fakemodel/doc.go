// Package fakemodel is a scripted stand-in for the model servers that agent
// programs speak to, for tests of real agent programs without a model.
//
// It listens on loopback only and calls nothing. It speaks Anthropic's Messages,
// OpenAI's Responses and Chat Completions, and Gemini's generateContent, each as
// a stream and whole. A conversation is known by a word in what the user said;
// its turns are taken one by one, each by the next request that offers a tool to
// run commands with. What a program asks besides (a title, a check) gets a short
// answer and takes no turn.
//
// The turns belong to the server, not to the client's history: a program that is
// killed and resumed goes on with the next turn, as a test wants it. All methods
// are safe for concurrent use.
package fakemodel
