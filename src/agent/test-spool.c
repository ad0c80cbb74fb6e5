/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/spool.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "unit.h"

static const struct spool_limits roomy = {
	.bytes = 1 << 20, .sessions = 100, .memory_bytes = 1 << 20};

struct place {
	char root[32];
	char *directory;
};

static struct place make_place(void)
{
	struct place place = {.root = "/tmp/cairn-test-XXXXXX"};

	ASSERT_TRUE(mkdtemp(place.root) != NULL);
	ASSERT_OK(str_format(&place.directory, "%s/spool", place.root));
	return place;
}

/* Remove what a test has left, which is never more than a folder of files. */
static void remove_place(struct place *place)
{
	_cleanup_free_ char *command = NULL;

	ASSERT_OK(str_format(&command, "rm -rf %s", place->root));
	ASSERT_EQ(system(command), 0);
	free(place->directory);
}

static struct spool *open_well(const struct place *place, const struct spool_limits *limits)
{
	struct spool *spool = NULL;
	struct error *problem = NULL;

	ASSERT_OK(spool_open(place->directory, limits, &spool, &problem));
	ASSERT_OK(problem);
	return spool;
}

/* Add a session whose id is the digit of NUMBER. */
static enum spool_place add(struct spool *spool, int number, size_t size)
{
	_cleanup_(parcel_deinit) struct parcel parcel = {.data_size = size};
	struct error *why = NULL;

	memset(parcel.id, '0' + number, PARCEL_ID_LENGTH);
	parcel.data = calloc(1, size);
	ASSERT_OK(str_copy(&parcel.service, "shop"));
	enum spool_place at = spool_add(spool, &parcel, &why);
	ASSERT_EQ(at == SPOOL_on_disk, why == NULL);
	error_free(why);
	return at;
}

/* The digit of the oldest, which is sent; -1: nothing waits. */
static int send_first(struct spool *spool)
{
	_cleanup_(parcel_deinit) struct parcel parcel = PARCEL_INIT;
	uint64_t number;

	if (!spool_first(spool, &number, &parcel))
		return -1;
	spool_done(spool, number);
	return parcel.id[0] - '0';
}

TEST(sessions_come_out_in_the_order_in_which_they_went_in)
{
	struct place place = make_place();
	struct spool *spool = open_well(&place, &roomy);

	for (int i = 1; i <= 5; i++)
		ASSERT_EQ(add(spool, i, 100), SPOOL_on_disk);
	ASSERT_EQ(spool_count(spool).waiting, 5);
	for (int i = 1; i <= 5; i++)
		ASSERT_EQ(send_first(spool), i);
	ASSERT_EQ(send_first(spool), -1);
	spool_close(spool);
	remove_place(&place);
}

TEST(a_new_process_finds_what_waits_and_goes_on_behind_it)
{
	struct place place = make_place();
	struct spool *spool = open_well(&place, &roomy);

	add(spool, 1, 100);
	add(spool, 2, 100);
	ASSERT_EQ(send_first(spool), 1);
	spool_close(spool);
	spool = open_well(&place, &roomy);
	add(spool, 3, 100);
	ASSERT_EQ(send_first(spool), 2);
	ASSERT_EQ(send_first(spool), 3);
	spool_close(spool);
	remove_place(&place);
}

TEST(the_oldest_give_way_and_are_counted)
{
	struct place place = make_place();
	struct spool_limits few = {.bytes = 1 << 20, .sessions = 3, .memory_bytes = 1 << 20};
	struct spool *spool = open_well(&place, &few);

	for (int i = 1; i <= 5; i++)
		add(spool, i, 100);
	ASSERT_EQ(spool_count(spool).dropped, 2);
	ASSERT_EQ(send_first(spool), 3);
	spool_close(spool);
	struct spool_limits small = {.bytes = 400, .sessions = 100, .memory_bytes = 1 << 20};
	spool = open_well(&place, &small); // a smaller limit than before
	ASSERT_EQ(spool_count(spool).waiting, 2);
	add(spool, 6, 100);
	ASSERT_EQ(spool_count(spool).dropped, 1);
	ASSERT_EQ(add(spool, 7, 1000), SPOOL_dropped); // larger than all there may be
	spool_close(spool);
	remove_place(&place);
}

TEST(what_is_being_sent_does_not_give_way)
{
	_cleanup_(parcel_deinit) struct parcel parcel = PARCEL_INIT;
	struct place place = make_place();
	struct spool_limits two = {.bytes = 1 << 20, .sessions = 2, .memory_bytes = 1 << 20};
	struct spool *spool = open_well(&place, &two);
	uint64_t number;

	add(spool, 1, 100);
	add(spool, 2, 100);
	ASSERT_TRUE(spool_first(spool, &number, &parcel));
	add(spool, 3, 100);
	ASSERT_EQ(spool_count(spool).dropped, 1); // 2
	spool_done(spool, number);
	ASSERT_EQ(send_first(spool), 3);
	spool_close(spool);
	remove_place(&place);
}

TEST(one_process_at_a_time_has_a_directory)
{
	struct place place = make_place();
	struct spool *spool = open_well(&place, &roomy), *second = NULL;
	struct error *problem = NULL;

	ASSERT_FAILS(spool_open(place.directory, &roomy, &second, &problem), "another agent");
	spool_close(spool);
	spool = open_well(&place, &roomy);
	spool_close(spool);
	remove_place(&place);
}

TEST(a_directory_that_cannot_be_used_leaves_memory)
{
	struct place place = make_place();
	struct spool *spool = NULL;
	struct error *problem = NULL;
	struct spool_limits little = {.bytes = 1 << 20, .sessions = 100, .memory_bytes = 400};

	close(open(place.directory, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	ASSERT_OK(spool_open(place.directory, &little, &spool, &problem));
	ASSERT_FAILS(problem, place.directory);
	for (int i = 1; i <= 4; i++)
		ASSERT_EQ(add(spool, i, 100), SPOOL_in_memory);
	ASSERT_TRUE(spool_count(spool).dropped > 0);
	ASSERT_EQ(spool_count(spool).dropped + spool_count(spool).in_memory, 4);
	ASSERT_EQ(send_first(spool), (int)spool_count(spool).dropped + 1);
	spool_close(spool);
	remove_place(&place);
}

TEST(a_directory_of_others_is_not_used)
{
	struct place place = make_place();
	struct spool *spool = NULL;
	struct error *problem = NULL;

	ASSERT_EQ(mkdir(place.directory, 0777), 0);
	ASSERT_EQ(chmod(place.directory, 0777), 0);
	ASSERT_OK(spool_open(place.directory, &roomy, &spool, &problem));
	ASSERT_FAILS(problem, "others may write");
	spool_close(spool);
	remove_place(&place);
}

TEST(a_full_disk_holds_nobody_up_and_loses_nothing_that_fits_into_memory)
{
	struct place place = make_place();

	ASSERT_EQ(mkdir(place.directory, 0700), 0);
	if (mount("none", place.directory, "tmpfs", 0, "size=64k,mode=0700") < 0) {
		remove_place(&place);
		SKIP("may not mount");
	}
	struct spool *spool = open_well(&place, &roomy);
	ASSERT_EQ(add(spool, 1, 30000), SPOOL_on_disk);
	ASSERT_EQ(add(spool, 2, 60000), SPOOL_in_memory);
	ASSERT_EQ(add(spool, 3, 100), SPOOL_in_memory); // behind one that waits for room
	ASSERT_EQ(send_first(spool), 1);
	ASSERT_EQ(send_first(spool), 2);
	ASSERT_EQ(add(spool, 4, 100), SPOOL_on_disk);
	ASSERT_EQ(spool_count(spool).in_memory, 0); // 3 has moved, too
	ASSERT_EQ(spool_count(spool).dropped, 0);
	spool_close(spool);
	spool = open_well(&place, &roomy);
	ASSERT_EQ(send_first(spool), 3);
	ASSERT_EQ(send_first(spool), 4);
	spool_close(spool);
	ASSERT_EQ(umount(place.directory), 0);
	remove_place(&place);
}

static void put(const struct place *place, const char *name, const char *text)
{
	_cleanup_free_ char *path = NULL;

	ASSERT_OK(str_format(&path, "%s/%s", place->directory, name));
	_cleanup_close_ int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
	ASSERT_EQ(write(fd, text, strlen(text)), strlen(text));
}

TEST(what_is_no_session_is_counted_or_left_alone)
{
	struct place place = make_place();
	struct spool *spool = open_well(&place, &roomy);
	_cleanup_free_ char *link = NULL, *half = NULL;

	add(spool, 1, 100);
	add(spool, 2, 100);
	spool_close(spool);
	put(&place, "0000000000000001.session", "cut");     // 1, damaged
	put(&place, "0000000000000009.session.77.tmp", ""); // of a process that was killed
	put(&place, "000000000000000A.session", "");
	put(&place, "notes.txt", "");
	ASSERT_OK(str_format(&link, "%s/0000000000000007.session", place.directory));
	ASSERT_EQ(symlink("/etc/passwd", link), 0);
	spool = open_well(&place, &roomy);
	ASSERT_EQ(spool_count(spool).waiting, 2);
	ASSERT_EQ(send_first(spool), 2);
	ASSERT_EQ(spool_count(spool).damaged, 1);
	ASSERT_OK(str_format(&half, "%s/0000000000000009.session.77.tmp", place.directory));
	ASSERT_EQ(access(half, F_OK), -1);
	ASSERT_EQ(access(link, F_OK), 0);
	spool_close(spool);
	remove_place(&place);
}

RUN_TESTS(UNIT_TEST(sessions_come_out_in_the_order_in_which_they_went_in),
	  UNIT_TEST(a_new_process_finds_what_waits_and_goes_on_behind_it),
	  UNIT_TEST(the_oldest_give_way_and_are_counted),
	  UNIT_TEST(what_is_being_sent_does_not_give_way),
	  UNIT_TEST(one_process_at_a_time_has_a_directory),
	  UNIT_TEST(a_directory_that_cannot_be_used_leaves_memory),
	  UNIT_TEST(a_directory_of_others_is_not_used),
	  UNIT_TEST(a_full_disk_holds_nobody_up_and_loses_nothing_that_fits_into_memory),
	  UNIT_TEST(what_is_no_session_is_counted_or_left_alone))
