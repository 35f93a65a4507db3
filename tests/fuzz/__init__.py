"""Fuzzers: whatever goes in, an answer or an error of ours comes out, in bounded time and memory."""
