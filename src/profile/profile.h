/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile: interned strings, frames, stacks (a trie linked to parents) and samples. Readers and
 * writers of every format go through it. Each of these has a stated maximum. A call that would pass
 * one fails and leaves the profile as it was; who drops a sample for it says so with
 * profile_turn_away().
 *
 * Frames hold names: they are made by symbolize/ once per distinct address, after sampling.
 *
 * Ids count from 0 without gaps in the order of the first call, so that the same calls give the
 * same profile. Passing an id that the profile has not given is a mistake of the program.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/kinds.h"
#include "base/counters.h"
#include "base/error.h"

typedef uint32_t string_id; /* 0: the empty string */
typedef uint32_t frame_id;
typedef uint32_t stack_id;
enum { STACK_EMPTY = 0 }; /* the trie's root: the stack without frames */

struct frame {
	enum frame_kind kind;
	bool inlined;
	string_id function; /* as shown: demangled, or "(object+0x4a30)", or "[cut: ...]" */
	string_id file;     /* 0: unknown */
	uint32_t line;      /* 0: unknown */
	string_id object;   /* path of the program or library; 0: none */
	uint64_t offset;    /* address in the object of the function's start; 0: unknown */
};

struct process {
	uint32_t pid;
	string_id name;        /* comm */
	string_id container;   /* 0: none, or not known */
	string_id application; /* "appid: ...", what it runs; 0: not known */
};

/* value: how many samples of weight 1. */
struct profile_sample {
	stack_id stack;
	uint32_t process; /* index */
	uint32_t tid;     /* 0: threads are not told apart */
	uint64_t value;
};

struct profile_cut {
	const char *reason; /* row text of abi/ends.def; borrowed */
	uint64_t samples;
};

/* What is known of the session; a member that is 0 or NULL is not known. Strings are owned by the
 * profile. */
struct session_facts {
	uint64_t start_realtime_ns, end_realtime_ns;
	uint32_t rate_hz;
	uint64_t period; /* one sample every so many events; 0: by rate_hz, or not known */
	uint32_t cpus;
	string_id title;   /* what was profiled, for a person: "nginx (pid 7)" */
	string_id command; /* the command line that made the profile */
	string_id version; /* of the program that made it */
	string_id event;   /* "cpu-time" for the timer, else as the user named it */
	string_id host;
	string_id system, kernel, kernel_build, machine; /* uname's sysname, release, version,
							    machine */
	string_id metadata;    /* identity/metadata.h: JSON, an object's members in ASCII */
	bool containers_named; /* processes without a container's name are in none */
	bool no_containers;    /* .col without the frame of the container, as its version 1 */
	bool show_objects;     /* texts name the object of a native frame, too */
	uint64_t samples, lost;
	struct counters counters;
	struct profile_cut cuts[32];
	size_t cut_count;
	string_id notes[16]; /* sentences for the reader */
	size_t note_count;
};

struct profile;

struct profile_limits {
	size_t strings_bytes;             /* 0: the default of 256 MiB */
	uint32_t frames, stacks, samples; /* 0: the default of 4 M, 16 M, 16 M */
	uint32_t processes;               /* 0: the default of 1 M */
};

struct error *profile_new(const struct profile_limits *limits, struct profile **ret);
void profile_free(struct profile *profile);
static inline void cleanup_profile(struct profile **profile)
{
	profile_free(*profile);
}
#define _cleanup_profile_ _cleanup_(cleanup_profile)

struct session_facts *profile_facts(struct profile *profile);
const struct session_facts *profile_facts_const(const struct profile *profile);

/* Interning: the same value gives the same id. Text is copied. */
struct error *profile_string(struct profile *profile, const char *text, size_t length,
			     string_id *ret);
struct error *profile_frame(struct profile *profile, const struct frame *frame, frame_id *ret);
/* The stack PARENT with FRAME called from it; root first, so the leaf is the stack's own frame. */
struct error *profile_stack(struct profile *profile, stack_id parent, frame_id frame,
			    stack_id *ret);
struct error *profile_process(struct profile *profile, const struct process *process,
			      uint32_t *ret);

/* Add VALUE to the sample {stack, process, tid}; value counts from 1. */
struct error *profile_add(struct profile *profile, const struct profile_sample *sample);

/* Count samples worth VALUE that did not get in: COUNTER_profile_full of the facts. */
void profile_turn_away(struct profile *profile, uint64_t value);

/*
 * Reading. Pointers are borrowed and hold until the next call that adds to the profile; text holds
 * as long as the profile. A text ends in a NUL that LENGTH does not count, and may hold others.
 * STACK_EMPTY has no frame and no parent to ask for; every other stack's parent has a smaller id.
 */
const char *profile_text(const struct profile *profile, string_id id,
			 size_t *ret_length /* may be NULL */);
const struct frame *profile_frame_at(const struct profile *profile, frame_id id);
stack_id profile_stack_parent(const struct profile *profile, stack_id id);
frame_id profile_stack_frame(const struct profile *profile, stack_id id);
const struct process *profile_process_at(const struct profile *profile, uint32_t index);
const struct profile_sample *profile_sample_at(const struct profile *profile, size_t index);

/* How many there are. Stacks include STACK_EMPTY, strings the empty one. */
size_t profile_strings(const struct profile *profile);
size_t profile_frames(const struct profile *profile);
size_t profile_stacks(const struct profile *profile);
size_t profile_processes(const struct profile *profile);
size_t profile_samples(const struct profile *profile);
