/* SPDX-License-Identifier: Apache-2.0 */
/* Following the stack through one function. Which functions there are is scan-object.c's business.
 */
#include "object/scan.h"

#include <string.h>

#include "base/array.h"

enum {
	STATES_MAX = 1024, /* numbers have 16 bits */
	INDIRECT_MAX = 4,  /* different stacks at the indirect jumps of one function */
	STATES_PER_STEP = 8,
	RESTARTS_MAX = 64,
	NO_RETURN_MAX = 128,
	NO_RETURN_SEEN = 3,   /* times that functions end with a call of it */
	VISITS = 4,           /* of one instruction: reached, then up to three times knowing less */
	STEPS_PER_BYTE = 16,  /* of one function, over all restarts and trials */
	STEPS_MAX = 48 << 20, /* of one object: some seconds */
	BYTES_PER_STEP = 16,  /* to forget what was known of so many takes as long as a step */
	PADDING_MAX = 15,
};

enum outcome {
	FLOW_done,
	FLOW_restart, /* a call was found not to return */
	FLOW_conflict,
	FLOW_unknown, /* not understood */
};

enum {
	FLAG_by_call = 1,     /* reached by the return of a call only */
	FLAG_no_return = 2,   /* the call that ends here does not return */
	FLAG_padded_call = 4, /* a call that may return ends here, and padding follows */
};

/* A function that does not return, or does not seem to. */
struct no_return {
	uint64_t addr;
	unsigned seen;
};

/* A change, to take it back after a trial. */
struct change {
	uint32_t offset;
	uint16_t before;
};

struct scanner {
	scan_decode_fn *decode;
	const struct scan_function *function;
	size_t length; /* of what is taken to be this function */

	struct scan_state *states; /* distinct ones; number 0 is none */
	size_t state_count, state_room;

	size_t room;    /* bytes of code that all of these are large enough for */
	uint16_t *at;   /* by offset: number of the state there, 0: not reached */
	uint8_t *flags; /* by offset */
	uint32_t *work; /* offsets to go on at */
	uint32_t *late; /* the same behind calls: gone on at when work is empty */
	struct change *changes;
	size_t work_count, late_count, change_count;
	size_t reached_end; /* nothing was reached from here on */

	uint16_t indirect[INDIRECT_MAX];
	size_t indirect_count;
	struct scan_exit exits[SCAN_EXITS_MAX];
	size_t exit_count;

	size_t restart_at;  /* behind the call that does not return */
	size_t conflict_at; /* the instruction that does not fit */
	uint64_t last_call; /* what is called at the very end; 0: nothing that is known */
	size_t steps;       /* in this function */
	size_t steps_left;  /* in all others */

	struct no_return no_return[NO_RETURN_MAX];
	size_t no_return_count;
};

struct error *scanner_new(scan_decode_fn *decode, struct scanner **ret)
{
	struct scanner *s = calloc(1, sizeof(*s));

	if (!s)
		return error_oom();
	s->decode = decode;
	s->steps_left = STEPS_MAX;
	*ret = s;
	return NULL;
}

static void free_room(struct scanner *s)
{
	free(s->at);
	free(s->flags);
	free(s->work);
	free(s->late);
	free(s->changes);
}

void scanner_free(struct scanner *s)
{
	if (!s)
		return;
	free_room(s);
	free(s->states);
	free(s);
}

static struct error *make_room(struct scanner *s, size_t length)
{
	free_room(s);
	s->at = calloc(length, sizeof(*s->at));
	s->flags = calloc(length, sizeof(*s->flags));
	s->work = calloc(length, VISITS * sizeof(*s->work));
	s->late = calloc(length, sizeof(*s->late));
	s->changes = calloc(length, VISITS * sizeof(*s->changes));
	bool whole = s->at && s->flags && s->work && s->late && s->changes;
	s->room = whole ? length : 0;
	return whole ? NULL : error_oom();
}

static bool scanner_no_return(const struct scanner *s, uint64_t addr)
{
	for (size_t i = 0; i < s->no_return_count; i++)
		if (s->no_return[i].addr == addr)
			return s->no_return[i].seen >= NO_RETURN_SEEN;
	return false;
}

/* A function ends with a call of ADDR: that does not return, unless the end is not the end. */
static void note_no_return(struct scanner *s, uint64_t addr)
{
	for (size_t i = 0; i < s->no_return_count; i++)
		if (s->no_return[i].addr == addr) {
			s->no_return[i].seen++;
			return;
		}
	if (addr && s->no_return_count < NO_RETURN_MAX)
		s->no_return[s->no_return_count++] = (struct no_return){addr, 1};
}

/* The number of STATE; 0: there are too many. */
static uint16_t number_of(struct scanner *s, const struct scan_state *state)
{
	size_t i = s->state_count - 1;

	while (i > 0 && !scan_state_equal(&s->states[i], state))
		i--;
	// Ordinary functions have a few dozen. Where there are many, looking for one is work too.
	s->steps += (s->state_count - i) / STATES_PER_STEP;
	if (i > 0)
		return (uint16_t)i;
	_cleanup_error_ struct error *err =
		ARRAY_RESERVE(s->states, s->state_room, s->state_count, 1, STATES_MAX, "states");
	if (err) // the function is then one that is not understood
		return 0;
	s->states[s->state_count] = *state;
	return (uint16_t)s->state_count++;
}

static bool decode(const struct scanner *s, size_t offset, struct insn *ret)
{
	struct bytes b = s->function->code;

	b.end = b.at + s->length;
	b.at += offset;
	return s->decode(&b, s->function->addr + offset, ret);
}

/* Go on at OFFSET with state NUMBER. False: it has been visited too often. */
static bool visit(struct scanner *s, size_t offset, uint16_t number, bool late)
{
	if (s->work_count == VISITS * s->room || s->change_count == VISITS * s->room ||
	    s->late_count == s->room)
		return false;
	s->changes[s->change_count++] = (struct change){(uint32_t)offset, s->at[offset]};
	s->at[offset] = number;
	if (s->reached_end <= offset)
		s->reached_end = offset + 1;
	if (late)
		s->late[s->late_count++] = (uint32_t)offset;
	else
		s->work[s->work_count++] = (uint32_t)offset;
	return true;
}

/* OFFSET was reached before, with another state. */
static enum outcome meet(struct scanner *s, size_t offset, const struct scan_state *state,
			 bool by_call)
{
	struct scan_state both;

	if (scan_state_meet(&s->states[s->at[offset]], state, &both)) {
		uint16_t number = number_of(s, &both);
		if (!number)
			return FLOW_unknown;
		if (number == s->at[offset] || visit(s, offset, number, false))
			return FLOW_done;
		return FLOW_unknown;
	}
	// A path out of a call that comes late is no path: the call does not return.
	if (by_call)
		return FLOW_done;
	if (!(s->flags[offset] & FLAG_by_call))
		return FLOW_conflict;
	s->restart_at = offset;
	return FLOW_restart;
}

/* A path arrives at OFFSET with STATE. */
static enum outcome reach(struct scanner *s, size_t offset, const struct scan_state *state,
			  bool by_call)
{
	uint16_t number = number_of(s, state);

	if (!number)
		return FLOW_unknown;
	if (!s->at[offset]) {
		s->flags[offset] |= by_call ? FLAG_by_call : 0;
		return visit(s, offset, number, by_call) ? FLOW_done : FLOW_unknown;
	}
	if (s->at[offset] != number)
		return meet(s, offset, state, by_call);
	if (!by_call)
		s->flags[offset] &= ~FLAG_by_call;
	return FLOW_done;
}

static enum outcome note_exit(struct scanner *s, uint64_t addr, const struct scan_state *state)
{
	for (size_t i = 0; i < s->exit_count; i++) {
		if (s->exits[i].addr != addr)
			continue;
		return scan_state_equal(&s->exits[i].state, state) ? FLOW_done : FLOW_conflict;
	}
	if (s->exit_count == SCAN_EXITS_MAX)
		return FLOW_unknown;
	s->exits[s->exit_count++] = (struct scan_exit){addr, *state};
	return FLOW_done;
}

/* A jump to ADDR, which may be in another function. */
static enum outcome jump_to(struct scanner *s, uint64_t addr, const struct scan_state *state)
{
	if (addr >= s->function->addr && addr - s->function->addr < s->length)
		return reach(s, addr - s->function->addr, state, false);
	return note_exit(s, addr, state);
}

/* Execution goes on behind an instruction, at OFFSET. */
static enum outcome go_on(struct scanner *s, size_t offset, const struct scan_state *state,
			  bool by_call)
{
	if (offset < s->length)
		return reach(s, offset, state, by_call);
	// Into the next function: two names for one piece of code.
	return scan_state_is_at_entry(state) ? FLOW_done : FLOW_conflict;
}

/* Where the code goes on behind padding, from NEXT on. */
static size_t skip_padding(const struct scanner *s, size_t next)
{
	struct insn insn;

	while (next < s->length && decode(s, next, &insn) && insn.kind == INSN_padding)
		next += insn.length;
	return next;
}

/* Behind a call of TARGET, unless it is known not to return. */
static enum outcome follow_call(struct scanner *s, size_t next, uint64_t target,
				const struct scan_state *state)
{
	size_t code = skip_padding(s, next);

	// The code at the entry point never sees its one call return.
	if (s->function->start.ra == SCAN_RA_nowhere)
		return FLOW_done;
	if (code >= s->length) {
		s->last_call = target;
		return FLOW_done;
	}
	if ((s->flags[next] & FLAG_no_return) || scanner_no_return(s, target))
		return FLOW_done;
	s->flags[next] |= code > next ? FLAG_padded_call : 0;
	return go_on(s, next, state, true);
}

static enum outcome note_indirect(struct scanner *s, uint16_t number)
{
	for (size_t i = 0; i < s->indirect_count; i++)
		if (s->indirect[i] == number)
			return FLOW_done;
	if (!number || s->indirect_count == INDIRECT_MAX)
		return FLOW_unknown;
	s->indirect[s->indirect_count++] = number;
	return FLOW_done;
}

static enum outcome follow(struct scanner *s, const struct insn *insn, size_t next,
			   const struct scan_state *state)
{
	enum outcome outcome;

	switch (insn->kind) {
	case INSN_call:
		return follow_call(s, next, insn->target, state);
	case INSN_jump:
		return jump_to(s, insn->target, state);
	case INSN_branch:
		outcome = jump_to(s, insn->target, state);
		return outcome == FLOW_done ? go_on(s, next, state, false) : outcome;
	case INSN_return:
		return scan_state_is_at_entry(state) ? FLOW_done : FLOW_conflict;
	case INSN_jump_indirect:
		return note_indirect(s, number_of(s, state));
	case INSN_stop:
		return FLOW_done;
	case INSN_other:
	case INSN_padding:
	case INSN_push:
	case INSN_pop:
	case INSN_sp_add:
	case INSN_sp_from_fp:
	case INSN_sp_lost:
	case INSN_fp_from_sp:
	case INSN_fp_lost:
	case INSN_fp_store:
	case INSN_fp_load:
	case INSN_leave:
		break;
	}
	return go_on(s, next, state, false);
}

/* Follow all paths from OFFSET, reached with START. */
static enum outcome flow(struct scanner *s, size_t offset, const struct scan_state *start)
{
	size_t steps_max = STEPS_PER_BYTE * bytes_left(&s->function->code);
	struct insn insn;

	s->work_count = 0;
	s->late_count = 0;
	enum outcome outcome = reach(s, offset, start, false);
	while (outcome == FLOW_done && s->work_count + s->late_count > 0) {
		uint32_t from = s->work_count ? s->work[--s->work_count] : s->late[--s->late_count];
		struct scan_state state = s->states[s->at[from]];
		if (s->steps++ > steps_max || !decode(s, from, &insn) ||
		    !scan_state_apply(&state, &insn))
			return FLOW_unknown;
		outcome = follow(s, &insn, from + insn.length, &state);
		s->conflict_at = from;
	}
	return outcome;
}

/* Where a trial begins. */
struct mark {
	size_t changes, indirect, exits, reached_end;
};

/* Take back everything since MARK. */
static void undo(struct scanner *s, const struct mark *mark)
{
	while (s->change_count > mark->changes) {
		const struct change *change = &s->changes[--s->change_count];
		s->at[change->offset] = change->before;
		if (!change->before)
			s->flags[change->offset] &= ~FLAG_by_call;
	}
	s->indirect_count = mark->indirect;
	s->exit_count = mark->exits;
	s->reached_end = mark->reached_end;
}

/*
 * Code that no path reached, at OFFSET: with which of the states at the indirect jumps does it work
 * out? *RET is its number; 0: with none, or with several.
 */
static enum outcome try_indirect(struct scanner *s, size_t offset, uint16_t *ret)
{
	struct mark mark = {s->change_count, s->indirect_count, s->exit_count, s->reached_end};
	unsigned fitting = 0, restarts = 0;
	uint16_t found = 0;

	for (size_t i = 0; i < mark.indirect; i++) {
		struct scan_state state = s->states[s->indirect[i]];
		enum outcome outcome = flow(s, offset, &state);
		if (outcome == FLOW_done)
			found = s->indirect[i];
		fitting += outcome == FLOW_done;
		restarts += outcome == FLOW_restart;
		undo(s, &mark);
	}
	if (!fitting && restarts == 1)
		return FLOW_restart;
	*ret = fitting == 1 ? found : 0;
	return FLOW_done;
}

/* The next code at or behind OFFSET that no path has reached. False: there is none. */
static bool find_unreached(const struct scanner *s, size_t *offset)
{
	struct insn insn;

	while (*offset < s->length && decode(s, *offset, &insn)) {
		if (!s->at[*offset] && insn.kind != INSN_padding)
			return true;
		*offset += insn.length;
	}
	return false;
}

/* Are all indirect jumps calls of another function? */
static bool has_no_switch(const struct scanner *s)
{
	for (size_t i = 0; i < s->indirect_count; i++)
		if (!scan_state_is_at_entry(&s->states[s->indirect[i]]))
			return false;
	return true;
}

/* Go on with code that only indirect jumps reach. */
static enum outcome scan_rest(struct scanner *s)
{
	enum outcome outcome = FLOW_done;
	size_t offset = 0;
	struct insn insn;

	while (outcome == FLOW_done && find_unreached(s, &offset)) {
		uint16_t number = 0;
		outcome = try_indirect(s, offset, &number);
		if (outcome == FLOW_done && number) {
			struct scan_state state = s->states[number];
			outcome = flow(s, offset, &state);
		} else if (outcome == FLOW_done && has_no_switch(s) && s->reached_end <= offset) {
			s->length = offset; // the next function
		} else if (outcome == FLOW_done && decode(s, offset, &insn)) {
			offset += insn.length; // dead code, or a riddle: it gets no rule
		}
	}
	return outcome;
}

static void reset(struct scanner *s)
{
	s->length = bytes_left(&s->function->code);
	memset(s->at, 0, s->length * sizeof(*s->at));
	for (size_t i = 0; i < s->length; i++)
		s->flags[i] &= FLAG_no_return;
	s->state_count = 1;
	s->indirect_count = 0;
	s->exit_count = 0;
	s->change_count = 0;
	s->reached_end = 0;
	s->last_call = 0;
	s->steps += s->length / BYTES_PER_STEP;
}

/* Go through the function from its entry, then through what only indirect jumps reach. */
static enum outcome scan(struct scanner *s)
{
	reset(s);
	enum outcome outcome = flow(s, 0, &s->function->start);
	if (outcome == FLOW_done)
		outcome = scan_rest(s);
	if (outcome == FLOW_restart)
		s->flags[s->restart_at] |= FLAG_no_return;
	return outcome;
}

/*
 * Something does not fit. Padding behind a call aligns a loop, or stands between a function whose
 * last call does not return and the next one: then it is that, which went unnoticed, that does not
 * fit. The nearest such call before is taken not to return. False: there is none.
 */
static bool blame_call(struct scanner *s)
{
	for (size_t i = s->conflict_at; i > 0; i--) {
		if ((s->flags[i] & (FLAG_padded_call | FLAG_no_return)) != FLAG_padded_call)
			continue;
		s->flags[i] |= FLAG_no_return;
		return true;
	}
	return false;
}

/* Scan until no more calls are found that do not return. */
static enum outcome scan_to_end(struct scanner *s)
{
	enum outcome outcome = FLOW_restart;

	memset(s->flags, 0, bytes_left(&s->function->code));
	for (unsigned i = 0; i < RESTARTS_MAX && outcome == FLOW_restart; i++) {
		outcome = scan(s);
		if (outcome == FLOW_conflict && blame_call(s))
			outcome = FLOW_restart;
	}
	return outcome;
}

/* Add the instruction [START, END) to the piece that is being made, or begin another. */
static struct error *extend(struct rows_pieces *pieces, struct rows_piece *piece, uint64_t start,
			    uint64_t end, const struct unwind_rule *rule)
{
	bool near = start - piece->end <= PADDING_MAX;

	if (piece->end && near && memcmp(rule, &piece->rule, sizeof(*rule)) == 0) {
		piece->end = end;
		return NULL;
	}
	if (piece->end)
		TRY(rows_pieces_add(pieces, *piece));
	*piece = (struct rows_piece){start, end, *rule};
	return NULL;
}

/* The rule while INSN runs, STATE being what is before it. */
static struct unwind_rule rule_in(const struct scan_state *state, const struct insn *insn)
{
	struct scan_state during = *state;

	// A frame whose call has not come back is looked up in the call itself: what registers
	// held before it is gone.
	if (insn->kind == INSN_call)
		(void)scan_state_apply(&during, insn);
	return scan_state_rule(&during);
}

/* The rules of all instructions that were reached; the others but padding stay without. */
static struct error *emit(const struct scanner *s, struct rows_pieces *pieces)
{
	struct rows_piece piece = {0};
	struct insn insn;
	size_t offset = 0;

	while (offset < s->length && decode(s, offset, &insn)) {
		uint64_t addr = s->function->addr + offset;
		if (s->at[offset] || insn.kind != INSN_padding) {
			struct unwind_rule rule = rows_unknown;
			if (s->at[offset])
				rule = rule_in(&s->states[s->at[offset]], &insn);
			TRY(extend(pieces, &piece, addr, addr + insn.length, &rule));
		}
		offset += insn.length;
	}
	return piece.end ? rows_pieces_add(pieces, piece) : NULL;
}

struct error *scan_function(struct scanner *s, const struct scan_function *function,
			    struct rows_pieces *pieces, struct scan_result *ret)
{
	size_t length = bytes_left(&function->code);
	struct scan_result result = {.end = function->addr + length};
	enum outcome outcome;

	*ret = result;
	if (!length || length > SCAN_FUNCTION_MAX || !s->steps_left)
		return NULL;
	if (length > s->room)
		TRY(make_room(s, length));
	s->function = function;
	s->steps = 0;
	outcome = scan_to_end(s);
	s->steps_left -= s->steps < s->steps_left ? s->steps : s->steps_left;
	if (outcome != FLOW_done)
		return NULL;
	if (function->certain && s->length == length)
		note_no_return(s, s->last_call);
	TRY(emit(s, pieces));
	result.understood = true;
	result.end = function->addr + s->length;
	result.exits = s->exits;
	result.exit_count = s->exit_count;
	*ret = result;
	return NULL;
}
