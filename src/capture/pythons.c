/* SPDX-License-Identifier: Apache-2.0 */
/* Interpreters and the names of what they run. Which process runs which is in processes.c. */
#define LOG_DOMAIN "pythons"
#include "capture/pythons.h"

#include <string.h>

#include "abi/runtimes.h"
#include "base/array.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "proc/process-memory.h"
#include "proc/root.h"
#include "runtimes/python/attach.h"
#include "runtimes/python/code.h"
#include "runtimes/python/modules.h"
#include "runtimes/python/version.h"

enum {
	CODES_MAX = 1 << 20,
	ATTEMPTS_MAX = 4,
	/* What is kept of code objects, read or not; above that all are dropped, and read again
	 * when they are met again. */
	CODES_MAX_BYTES = 32 << 20,
	KNOWN_MAX = 16,
};

/* A code object of an image. */
struct named_code {
	uint64_t addr;
	uint32_t cookie;
	bool known;        /* code holds its names; else it could not be read */
	unsigned attempts; /* to read it */
	struct python_code code;
	char *function; /* with its module; owned */
	char *package;  /* "PyYAML==6.0"; owned; NULL: none is known */
	size_t bytes;   /* that are counted for it in pythons.code_bytes */
};

struct python_image {
	uint32_t refs;
	uint32_t slot; /* in the tables of the BPF side */
	uint32_t object;
	struct python_instance instance;
	struct named_code *code;
	size_t code_count, code_room;
	struct hash_index by_addr;
	struct python_modules *modules;
	bool cut;                              /* packages were left out, and it is counted */
	char version[PYTHON_VERSION_TEXT_MAX]; /* "3.11.2"; "": not asked for yet */
	uint32_t pid;                          /* whose root they are looked for in */
	struct python_image *next, *previous;  /* in pythons.images */
};

/* What was found of an object in some process, and is true of every other. */
struct known_python {
	uint32_t object;
	struct python_instance instance;
};

struct pythons {
	struct pythons_options options;
	struct known_python known[KNOWN_MAX];
	uint32_t known_count, next_known;
	struct python_image *images;
	struct python_image *of_slot[TABLE_PYTHONS];
	uint32_t slots[TABLE_PYTHONS]; /* free ones, used longest ago first */
	uint32_t first_slot, free_slots;
	uint32_t layouts; /* in use */
	size_t code_bytes;
	char *refusal, *told_refusal;
};

struct error *pythons_new(const struct pythons_options *options, struct pythons **ret)
{
	struct pythons *pythons = calloc(1, sizeof(*pythons));

	if (!pythons)
		return error_oom();
	pythons->options = *options;
	for (uint32_t i = 0; i < TABLE_PYTHONS; i++)
		pythons->slots[i] = i;
	pythons->free_slots = TABLE_PYTHONS;
	*ret = pythons;
	return NULL;
}

void pythons_free(struct pythons *pythons)
{
	if (!pythons)
		return;
	while (pythons->images) {
		pythons->images->refs = 1;
		python_image_unref(pythons, pythons->images);
	}
	for (uint32_t i = 0; i < pythons->known_count; i++)
		objects_unref(pythons->options.objects, pythons->known[i].object);
	free(pythons->refusal);
	free(pythons->told_refusal);
	free(pythons);
}

/* --- images */

static void named_code_deinit(struct named_code *code)
{
	python_code_deinit(&code->code);
	free(code->function);
	free(code->package);
	code->function = code->package = NULL;
}

static void drop_codes(struct pythons *pythons, struct python_image *image)
{
	for (size_t i = 0; i < image->code_count; i++) {
		pythons->code_bytes -= image->code[i].bytes;
		named_code_deinit(&image->code[i]);
	}
	free(image->code);
	image->code = NULL;
	image->code_count = image->code_room = 0;
	hash_index_deinit(&image->by_addr);
	image->by_addr = (struct hash_index)HASH_INDEX_INIT;
}

struct python_image *python_image_ref(struct python_image *image)
{
	if (image)
		image->refs++;
	return image;
}

void python_image_unref(struct pythons *pythons, struct python_image *image)
{
	if (!image || --image->refs)
		return;
	// Nobody's entry points at the slot any more, but for a child that the host has not heard
	// of yet; the slot that was free for the longest time is used first.
	struct python_process *entry = &pythons->options.processes[image->slot];
	*entry = (struct python_process){0};
	pythons->slots[(pythons->first_slot + pythons->free_slots++) % TABLE_PYTHONS] = image->slot;
	pythons->of_slot[image->slot] = NULL;
	if (image->next)
		image->next->previous = image->previous;
	if (image->previous)
		image->previous->next = image->next;
	else
		pythons->images = image->next;
	objects_unref(pythons->options.objects, image->object);
	drop_codes(pythons, image);
	python_modules_free(image->modules);
	free(image);
}

uint32_t python_image_number(const struct python_image *image)
{
	return image->slot + 1;
}

struct python_image *pythons_find(struct pythons *pythons, uint32_t number)
{
	return number && number <= TABLE_PYTHONS ? pythons->of_slot[number - 1] : NULL;
}

const struct python_instance *python_image_instance(const struct python_image *image)
{
	return &image->instance;
}

uint32_t python_image_object(const struct python_image *image)
{
	return image->object;
}

/* The number of LAYOUT in the BPF side's table; interpreters of one build share it. */
static bool find_layout(struct pythons *pythons, const struct python_layout *layout, uint32_t *ret)
{
	struct python_layout *table = pythons->options.layouts;

	for (uint32_t i = 0; i < pythons->layouts; i++)
		if (!memcmp(&table[i], layout, sizeof(*layout))) {
			*ret = i;
			return true;
		}
	if (pythons->layouts == TABLE_PYTHON_LAYOUTS)
		return false;
	table[pythons->layouts] = *layout;
	*ret = pythons->layouts++;
	return true;
}

/* As the process sees PATH. */
static struct error *open_file(void *context, const char *path, enum python_open what, int *ret_fd)
{
	const struct python_image *image = context;
	enum root_outcome outcome;
	int fd;

	TRY(what == PYTHON_OPEN_file ? root_open((pid_t)image->pid, path, &outcome, &fd)
				     : root_open_directory((pid_t)image->pid, path, &outcome, &fd));
	*ret_fd = outcome == ROOT_opened ? fd : -1;
	return NULL;
}

/* Enter INSTANCE. RET is NULL if a table is full, which is counted. */
static struct error *add_image(struct pythons *pythons, const struct python_instance *instance,
			       uint32_t object, struct python_image **ret)
{
	struct python_process entry = instance->process;

	*ret = NULL;
	if (!pythons->free_slots || !find_layout(pythons, &instance->layout, &entry.layout)) {
		counter_add(pythons->options.counters, COUNTER_pythons_full, 1);
		return NULL;
	}
	struct python_image *image = calloc(1, sizeof(*image));
	if (!image)
		return error_oom();
	const struct python_files files = {open_file, image};
	struct error *err = python_modules_new(files, pythons->options.versions, &image->modules);
	if (err) {
		free(image);
		return err;
	}
	image->refs = 1;
	image->object = object;
	image->instance = *instance;
	image->slot = pythons->slots[pythons->first_slot];
	pythons->first_slot = (pythons->first_slot + 1) % TABLE_PYTHONS;
	pythons->free_slots--;
	pythons->of_slot[image->slot] = image;
	pythons->options.processes[image->slot] = entry;
	objects_ref(pythons->options.objects, object);
	image->next = pythons->images;
	if (image->next)
		image->next->previous = image;
	pythons->images = image;
	*ret = image;
	return NULL;
}

static struct error *refuse(struct pythons *pythons, const struct python_place *place,
			    const char *why)
{
	counter_add(pythons->options.counters, COUNTER_pythons_refused, 1);
	log_debug("pid=%u refused=\"%s\"", place->pid, why);
	if (pythons->refusal)
		return NULL;
	return str_format(&pythons->refusal, "%s: %s",
			  objects_path(pythons->options.objects, place->object), why);
}

const char *pythons_take_refusal(struct pythons *pythons)
{
	free(pythons->told_refusal);
	pythons->told_refusal = pythons->refusal;
	pythons->refusal = NULL;
	return pythons->told_refusal;
}

static void remember(struct pythons *pythons, uint32_t object,
		     const struct python_instance *instance)
{
	for (uint32_t i = 0; i < pythons->known_count; i++)
		if (pythons->known[i].object == object)
			return;
	struct known_python *to = &pythons->known[pythons->next_known];
	if (pythons->known_count == KNOWN_MAX)
		objects_unref(pythons->options.objects, to->object);
	else
		pythons->known_count++;
	pythons->next_known = (pythons->next_known + 1) % KNOWN_MAX;
	objects_ref(pythons->options.objects, object);
	*to = (struct known_python){object, *instance};
}

/*
 * A program that starts is not ready to be looked at; but where its interpreter will be is known if
 * another process was. RET stays NULL if not.
 */
static struct error *attach_early(struct pythons *pythons, const struct python_place *place,
				  struct python_image **ret)
{
	for (uint32_t i = 0; i < pythons->known_count; i++) {
		if (pythons->known[i].object != place->object)
			continue;
		struct python_instance instance = pythons->known[i].instance;
		python_move(&instance, place->bias);
		return add_image(pythons, &instance, place->object, ret);
	}
	return NULL;
}

struct error *pythons_attach(struct pythons *pythons, const struct python_place *place,
			     enum pythons_outcome *ret_outcome, struct python_image **ret)
{
	const struct python_object *object =
		objects_python(pythons->options.objects, place->object);
	_cleanup_process_memory_ struct process_memory *process = NULL;
	enum process_memory_look look;
	struct python_instance instance;
	char why[PYTHON_REASON_MAX];

	*ret_outcome = PYTHONS_none;
	if (!object)
		return NULL;
	TRY(process_memory_open((pid_t)place->pid, &look, &process));
	if (look != PROCESS_MEMORY_opened)
		return NULL;
	struct memory memory = process_memory_reader(process);
	switch (python_attach(object, place->bias, &memory, &instance, why)) {
	case PYTHON_ATTACH_ok:
		remember(pythons, place->object, &instance);
		TRY(add_image(pythons, &instance, place->object, ret));
		*ret_outcome = *ret ? PYTHONS_attached : PYTHONS_none;
		return NULL;
	case PYTHON_ATTACH_later:
	case PYTHON_ATTACH_unreadable: // or: not all of it is mapped yet
		TRY(attach_early(pythons, place, ret));
		*ret_outcome = *ret ? PYTHONS_attached : PYTHONS_not_yet;
		return NULL;
	case PYTHON_ATTACH_refused:
		break;
	}
	return refuse(pythons, place, why);
}

/* --- code objects */

struct code_key {
	const struct named_code *code;
	uint64_t addr;
	uint32_t cookie;
};

static bool code_equal(const void *context, uint32_t item)
{
	const struct code_key *key = context;

	return key->code[item].addr == key->addr && key->code[item].cookie == key->cookie;
}

static uint64_t word_addr(const struct python_word *word)
{
	return word->head & ((1ull << SAMPLE_RUNTIME_SHIFT) - 1);
}

/* The module and the package of CODE, which has been read from MEMORY. */
static struct error *name_code(struct python_image *image, uint32_t pid,
			       const struct memory *memory, struct named_code *code)
{
	struct python_module module;

	image->pid = pid;
	TRY(python_modules_find(image->modules, code->code.file, &module));
	TRY(str_format(&code->function, "%s%s%s", module.name, *module.name ? "." : "",
		       *code->code.function ? code->code.function : "[unknown]"));
	if (module.standard && !image->version[0])
		python_version_text(&image->instance, memory, image->version);
	if (module.standard)
		return str_format(&code->package, "standard-library==%s", image->version);
	return module.package ? str_format(&code->package, "%s==%s", module.package, module.version)
			      : NULL;
}

/* Count what CODE takes by now. One that could not be read takes its place in the table. */
static void count_bytes(struct pythons *pythons, struct named_code *code)
{
	size_t bytes = sizeof(*code) + code->code.block_size;

	bytes += code->function ? strlen(code->function) : 0;
	bytes += code->package ? strlen(code->package) : 0;
	pythons->code_bytes += bytes - code->bytes;
	code->bytes = bytes;
}

/* Read the code object of WORD from its process. RET->known says whether that could be done. */
static struct error *read_code(struct python_image *image, const struct python_word *word,
			       struct named_code *ret)
{
	_cleanup_process_memory_ struct process_memory *process = NULL;
	enum process_memory_look look;
	enum python_code_outcome outcome;

	ret->attempts++;
	TRY(process_memory_open((pid_t)word->pid, &look, &process));
	if (look != PROCESS_MEMORY_opened)
		return NULL;
	struct memory memory = process_memory_reader(process);
	struct python_codes from = {&memory, &image->instance.at, image->instance.code_type};
	TRY(python_code_read(&from, ret->addr, &outcome, &ret->code));
	if (outcome != PYTHON_CODE_read)
		return NULL;
	// Another one's memory by now?
	if (ret->cookie != PYTHON_COOKIE_NONE && ret->cookie != ret->code.cookie) {
		python_code_deinit(&ret->code);
		ret->code = (struct python_code)PYTHON_CODE_INIT;
		return NULL;
	}
	struct error *err = name_code(image, word->pid, &memory, ret);
	if (err)
		named_code_deinit(ret);
	ret->known = !err;
	return err;
}

static struct error *add_code(struct pythons *pythons, struct python_image *image,
			      const struct python_word *word, struct named_code **ret)
{
	struct named_code code = {
		.addr = word_addr(word),
		.cookie = (uint32_t)(word->rest >> 32),
	};

	if (pythons->code_bytes > CODES_MAX_BYTES)
		for (struct python_image *each = pythons->images; each; each = each->next)
			drop_codes(pythons, each);
	TRY(ARRAY_RESERVE(image->code, image->code_room, image->code_count, 1, CODES_MAX,
			  "code objects"));
	struct error *err = read_code(image, word, &code);
	if (!err)
		err = hash_add(&image->by_addr, hash_u64(code.addr ^ code.cookie),
			       (uint32_t)image->code_count);
	if (err) {
		named_code_deinit(&code);
		return err;
	}
	if (python_modules_cut(image->modules) && !image->cut)
		counter_add(pythons->options.counters, COUNTER_python_packages_cut, 1);
	image->cut = python_modules_cut(image->modules);
	count_bytes(pythons, &code);
	image->code[image->code_count] = code;
	*ret = &image->code[image->code_count++];
	return NULL;
}

static struct error *find_code(struct pythons *pythons, struct python_image *image,
			       const struct python_word *word, struct named_code **ret)
{
	struct code_key key = {
		.code = image->code,
		.addr = word_addr(word),
		.cookie = (uint32_t)(word->rest >> 32),
	};
	uint32_t item;

	if (!hash_find(&image->by_addr, hash_u64(key.addr ^ key.cookie), code_equal, &key, &item))
		return add_code(pythons, image, word, ret);
	*ret = &image->code[item];
	// It may have been paged out; the attempt brings it back.
	if ((*ret)->known || (*ret)->attempts >= ATTEMPTS_MAX)
		return NULL;
	struct error *err = read_code(image, word, *ret);
	count_bytes(pythons, *ret);
	return err;
}

/* The same of frames that the host's walk may meet. */
static struct error *prefetch_kept(struct pythons *pythons, struct python_image *image,
				   const struct sample *sample)
{
	const uint64_t *words = (const uint64_t *)(sample + 1);
	const struct python_kept *kept =
		(const struct python_kept *)(words + sample->kernel_frames + sample->user_words);
	struct named_code *code;

	for (size_t i = 1; i < sample->kept_words / PYTHON_KEPT_WORDS; i++) {
		struct python_word word = {sample->pid,
					   sample_runtime_word(RUNTIME_python, kept[i].code),
					   kept[i].rest};
		if (kept[i].rest && word_addr(&word))
			TRY(find_code(pythons, image, &word, &code));
	}
	return NULL;
}

struct error *pythons_prefetch(struct pythons *pythons, const struct sample *sample)
{
	const uint64_t *words = (const uint64_t *)(sample + 1) + sample->kernel_frames;
	struct python_image *image = pythons_find(pythons, sample->python);
	struct named_code *code;

	for (size_t i = 0; image && i + 1 < sample->user_words; i++) {
		if (!sample_is_runtime(words[i]))
			continue;
		struct python_word word = {sample->pid, words[i], words[i + 1]};
		if (word_addr(&word))
			TRY(find_code(pythons, image, &word, &code));
		i++;
	}
	return image ? prefetch_kept(pythons, image, sample) : NULL;
}

static struct error *set_text(struct profile *profile, const char *text, string_id *ret)
{
	return profile_string(profile, text, strlen(text), ret);
}

/* In the place of frames that were not read. */
static struct error *lost_frame(enum python_lost why, struct profile *profile, struct frame *ret)
{
	return set_text(profile,
			why == PYTHON_LOST_state
				? "[no Python frames: the thread has no state in the interpreter]"
				: "[no Python frames: unreadable memory]",
			&ret->function);
}

struct error *pythons_frame(struct pythons *pythons, struct python_image *image,
			    const struct python_word *word, struct profile *profile,
			    struct frame *ret)
{
	struct frame frame = {.kind = KIND_python};
	struct named_code *code;

	if (!word_addr(word)) {
		counter_add(pythons->options.counters, COUNTER_python_lost, 1);
		TRY(lost_frame((enum python_lost)word->rest, profile, &frame));
		*ret = frame;
		return NULL;
	}
	TRY(find_code(pythons, image, word, &code));
	if (!code->known) {
		counter_add(pythons->options.counters, COUNTER_python_unnamed, 1);
		TRY(set_text(profile, "[unreadable Python function]", &frame.function));
		*ret = frame;
		return NULL;
	}
	TRY(set_text(profile, code->function, &frame.function));
	if (code->package)
		TRY(set_text(profile, code->package, &frame.object));
	TRY(set_text(profile, code->code.file, &frame.file));
	frame.line = python_code_line(&code->code, (uint32_t)word->rest);
	frame.offset = code->code.first_line;
	*ret = frame;
	return NULL;
}
