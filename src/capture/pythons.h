/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs that run CPython: their interpreters are found and checked, entered into the tables
 * of the BPF side, and their frames get names. Names are read from the process's memory soon after
 * the sample, for a code object lives at most as long as its process.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "abi/python.h"
#include "abi/sample.h"
#include "abi/tables.h"
#include "base/counters.h"
#include "base/error.h"
#include "capture/objects.h"
#include "profile/profile.h"

/*
 * One program that runs CPython: a process from an exec on, and what it forked. Counted; what is
 * known of its code is shared by all of them.
 */
struct python_image;

struct pythons;

/* All borrowed. */
struct pythons_options {
	/* What walks look up: TABLE_PYTHONS and TABLE_PYTHON_LAYOUTS of them. */
	struct python_process *processes;
	struct python_layout *layouts;
	struct objects *objects;
	struct counters *counters;
	bool versions; /* the package that a file belongs to, and its version */
};

struct error *pythons_new(const struct pythons_options *options, struct pythons **ret);
void pythons_free(struct pythons *pythons);

/* Where a process has an object that holds CPython. */
struct python_place {
	uint32_t pid;
	uint32_t object; /* number */
	uint64_t bias;
};

enum pythons_outcome {
	PYTHONS_none,    /* not an interpreter that walkers know; counted and told once */
	PYTHONS_not_yet, /* it is starting up, or ending */
	PYTHONS_attached,
};

/* Look at the interpreter at PLACE. RET, with one reference for the caller, is set only with
 * PYTHONS_attached. */
struct error *pythons_attach(struct pythons *pythons, const struct python_place *place,
			     enum pythons_outcome *ret_outcome, struct python_image **ret);

/* NULL is allowed. */
struct python_image *python_image_ref(struct python_image *image);
void python_image_unref(struct pythons *pythons, struct python_image *image);

/* What struct process_entry has in python. */
uint32_t python_image_number(const struct python_image *image);
struct python_instance;
const struct python_instance *python_image_instance(const struct python_image *image);
/* The object that holds the evaluator. */
uint32_t python_image_object(const struct python_image *image);

/* The image that NUMBER stands for in a sample; NULL: it is gone. Borrowed. */
struct python_image *pythons_find(struct pythons *pythons, uint32_t number);

/* Read the names of SAMPLE's Python frames now, while its process is there. */
struct error *pythons_prefetch(struct pythons *pythons, const struct sample *sample);

/* A frame of Python in a sample of process PID. */
struct python_word {
	uint32_t pid;
	uint64_t head, rest; /* abi/python.h */
};

/*
 * WORD as a frame of PROFILE, with its names: function with its module, file, line, in object the
 * package ("PyYAML==6.0"), in offset the line at which the function begins. One that cannot be read
 * any more says so.
 */
struct error *pythons_frame(struct pythons *pythons, struct python_image *image,
			    const struct python_word *word, struct profile *profile,
			    struct frame *ret);

/* Why interpreters were refused since the last call: "3.15 is not known"; NULL: none was. The text
 * holds until the next call. */
const char *pythons_take_refusal(struct pythons *pythons);
