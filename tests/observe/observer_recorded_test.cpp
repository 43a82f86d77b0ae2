// Whole trees as other kernels and other containers would show them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "plimsoll/error.h"
#include "plimsoll/observe.h"
#include "recorded_process.h"

namespace plimsoll {
namespace {

using observed::record;
using observed::RecordedProcess;
using observed::small_mappings;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kKiB = 1024;

ObserverOptions options_of(const RecordedTree& tree) {
  return {.proc_root = tree.root() + "/proc", .cgroup_root = tree.root(), .cost_limit = 1};
}

constexpr const char* kMountsOfVersion1 =
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
constexpr const char* kMountsOfVersion2 = "24 30 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
// As docker shows version 1 without a cgroup namespace: part of the hierarchy, at its root.
constexpr const char* kMountsInContainer =
    "35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro,relatime - cgroup cgroup rw,memory\n";

constexpr const char* kStatOfVersion1 =
    "cache 1\nrss 1\nshmem 0\nhierarchical_memory_limit 104857600\ntotal_cache 5242880\ntotal_rss 8388608\n"
    "total_shmem 1048576\ntotal_swap 4096\ntotal_inactive_file 3145728\ntotal_active_file 524288\n";
constexpr const char* kStatOfVersion2 =
    "anon 8388608\nfile 5242880\nkernel 3145728\nkernel_stack 262144\npagetables 131072\nsec_pagetables 0\n"
    "percpu 65536\nsock 98304\nvmalloc 4096\nshmem 1048576\nzswap 0\nzswapped 0\ninactive_file 3145728\n"
    "active_file 524288\nslab_reclaimable 1048576\nslab_unreclaimable 524288\nslab 1572864\n";

void record_version_1(RecordedTree& tree, const std::string& directory) {
  tree.add(directory + "/memory.stat", kStatOfVersion1);
  tree.add(directory + "/memory.usage_in_bytes", "15728640\n");
  tree.add(directory + "/memory.max_usage_in_bytes", "20971520\n");
  tree.add(directory + "/memory.kmem.usage_in_bytes", "2097152\n");
  tree.add(directory + "/memory.kmem.tcp.usage_in_bytes", "12288\n");
  tree.add(directory + "/cgroup.procs", "7\n");
}

void record_version_2(RecordedTree& tree, const std::string& directory) {
  tree.add(directory + "/cgroup.controllers", "memory pids\n");
  tree.add(directory + "/memory.stat", kStatOfVersion2);
  tree.add(directory + "/memory.current", "17039360\n");
  tree.add(directory + "/memory.peak", "18000000\n");
  tree.add(directory + "/memory.max", "max\n");
  tree.add(
      directory + "/memory.pressure",
      "some avg10=1.25 avg60=0.50 avg300=0.10 total=9\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
}

void record_member(RecordedTree& tree, const char* mounts, const char* cgroup) {
  record(tree, {});
  tree.add("/proc/self/mountinfo", mounts);
  tree.add("/proc/7/cgroup", cgroup);
}

Sample read_once(const RecordedTree& tree) {
  return Observer(7, options_of(tree)).Read();
}

TEST(ObserverRecorded, OneProcess) {
  RecordedTree tree;
  record(tree, {});
  const Sample sample = read_once(tree);
  ASSERT_FALSE(sample.gap) << sample.gap_reason;
  EXPECT_TRUE(sample.exact);
  EXPECT_EQ(sample.process.heap_bytes, 150 * kKiB);
  EXPECT_EQ(sample.process.stack_bytes, 20 * kKiB);
  EXPECT_EQ(sample.process.private_file_bytes, 50 * kKiB);
  EXPECT_EQ(sample.process.shared_file_bytes, 314 * kKiB);
  EXPECT_EQ(sample.process.sum_bytes, 534 * kKiB);
  EXPECT_EQ(sample.process.kernel_bytes, 534 * kKiB);
  EXPECT_EQ(sample.process.page_table_bytes, 40 * kKiB);
  EXPECT_EQ(sample.process.mappings, 4);
  EXPECT_EQ(sample.process.descriptors, 2);
  EXPECT_FALSE(sample.container);
}

// The counter of kernels before 6.2 lags behind for each thread, by some MiB where files are mapped.
TEST(ObserverRecorded, WhereTheCounterLagsTheKernelsOwnWalkIsAsked) {
  RecordedTree tree;
  auto mappings = small_mappings();
  mappings.push_back({"7f0000000000-7f0000400000 r-xp 00000000 fe:00 12 /lib/large.so", 4000, 0});
  record(tree, {.mappings = mappings, .missing_kib = 1500});
  tree.add("/proc/7/smaps_rollup", "1000-2000 ---p 00000000 00:00 0 [rollup]\nRss: 4534 kB\nPss: 4000 kB\n");
  const Sample sample = read_once(tree);
  EXPECT_EQ(sample.process.sum_bytes, 4534 * kKiB);
  EXPECT_EQ(sample.process.kernel_bytes, 4534 * kKiB);
  EXPECT_EQ(sample.process.rss_bytes, 3034 * kKiB);
}

TEST(ObserverRecorded, ATreesKernelFigureIsNeverBelowNothing) {
  RecordedTree tree;
  auto mappings = small_mappings();
  mappings.push_back({"7f0000000000-7f0000100000 r-xp 00000000 fe:00 12 /lib/shared.so", 900, 0, 30});
  record(tree, {.mappings = mappings, .missing_kib = 1000});
  record(tree, {.pid = 8, .parent = 7, .mappings = mappings, .missing_kib = 1000});
  const Sample sample = read_once(tree);
  EXPECT_EQ(sample.process.processes, 2);
  EXPECT_GT(sample.process.kernel_bytes, 0);
  EXPECT_EQ(SampleFromJson(ToJson(sample)).process.kernel_bytes, sample.process.kernel_bytes);
}

TEST(ObserverRecorded, WithoutACgroupTheAccountSaysSo) {
  RecordedTree tree;
  record(tree, {});
  EXPECT_THAT(Observer(7, options_of(tree)).Account().notes, Contains(HasSubstr("no memory cgroup")));
}

TEST(ObserverRecorded, AReusedPidIsAnEnd) {
  RecordedTree tree;
  record(tree, {});
  Observer observer(7, options_of(tree));
  EXPECT_FALSE(observer.Read().gap);
  record(tree, {.start_ticks = 2000});
  EXPECT_TRUE(observer.Read().gap);
  EXPECT_TRUE(observer.Ended());
  record(tree, {});
  EXPECT_TRUE(observer.Read().gap) << "what has ended does not come back";
}

TEST(ObserverRecorded, DescendantsWhateverTheirNumbersAndTheirParentsFate) {
  RecordedTree tree;
  record(tree, {.pid = 50});
  record(tree, {.pid = 9, .parent = 50});  // a lower number than its parent
  record(tree, {.pid = 60, .parent = 9});
  record(tree, {.pid = 70, .parent = 1});  // somebody else's
  Observer observer(50, options_of(tree));
  EXPECT_EQ(observer.Read().process.processes, 3);
  // The one between ends; its child is init's now, and still counts.
  tree.remove("/proc/9");
  record(tree, {.pid = 60, .parent = 1});
  EXPECT_EQ(observer.Read().process.processes, 2);
  // Its number goes to somebody else.
  record(tree, {.pid = 60, .parent = 1, .start_ticks = 5000});
  EXPECT_EQ(observer.Read().process.processes, 1);
  auto alone = options_of(tree);
  alone.tree = false;
  EXPECT_EQ(Observer(50, alone).Read().process.processes, 1);
}

TEST(ObserverRecorded, ForkedChildrenWhoseMappingsWereNotReadYetCountNoPageTwice) {
  RecordedTree tree;
  record(tree, {});
  auto options = options_of(tree);
  options.cost_limit = 1e-12;
  Observer observer(7, options);
  const Sample alone = observer.Read();
  auto more = small_mappings();
  more[2].rss_kib = more[2].anonymous_kib = 250;
  record(tree, {.pid = 8, .parent = 7});
  record(tree, {.pid = 9, .parent = 7, .mappings = more});
  const Sample forked = observer.Read();
  EXPECT_EQ(forked.process.processes, 3);
  EXPECT_FALSE(forked.exact);
  EXPECT_EQ(forked.process.sum_bytes, alone.process.sum_bytes + 100 * kKiB);
  EXPECT_EQ(forked.process.kernel_bytes, forked.process.sum_bytes);
  EXPECT_EQ(forked.process.rss_bytes, 3 * alone.process.rss_bytes + 100 * kKiB);
}

// A child of 7 that has executed a program of its own and maps a file of `file_kib` that others map too.
void record_executed(RecordedTree& tree, int pid, int file_kib, int pss_file_kib) {
  auto mappings = small_mappings();
  mappings.push_back({"7f0000000000-7f0001000000 r--s 00000000 fe:00 99 /data/common", file_kib, 0});
  record(tree, {.pid = pid, .parent = 7, .mappings = mappings});
  std::string stat = observed::stat_line(pid, "service", 'S', 7);
  stat.replace(stat.find("70000"), 5, std::to_string(70000 + pid));
  tree.add(fmt::format("/proc/{}/stat", pid), stat);
  tree.add(fmt::format("/proc/{}/smaps_rollup", pid),
           fmt::format("1000-2000 ---p 00000000 00:00 0 [rollup]\nRss: {} kB\nPss: {} kB\nPss_Anon: 220 kB\n"
                       "Pss_File: {} kB\nPss_Shmem: 0 kB\n",
                       file_kib + 534, pss_file_kib + 220, pss_file_kib));
}

TEST(ObserverRecorded, NewProgramsWhoseMappingsWereNotReadYetCountNoPageTwice) {
  RecordedTree tree;
  record(tree, {});
  auto options = options_of(tree);
  options.cost_limit = 1e-12;
  Observer observer(7, options);
  const Sample alone = observer.Read();
  for (const int pid : {8, 9, 10, 11}) record_executed(tree, pid, 60'000, 15'100);
  const Sample four = observer.Read();
  EXPECT_EQ(four.process.processes, 5);
  EXPECT_FALSE(four.exact);
  EXPECT_EQ(four.process.shared_file_bytes, alone.process.shared_file_bytes + 4 * 15'100 * kKiB);
  EXPECT_EQ(four.process.sum_bytes, alone.process.sum_bytes + 4 * (15'100 + 220) * kKiB);
  EXPECT_EQ(four.process.kernel_bytes, four.process.sum_bytes);
  EXPECT_EQ(four.process.rss_bytes, alone.process.rss_bytes + 4 * (60'000 + 534) * kKiB);
  // Two of them leave: their shares are the others' now. Then one more comes, that maps more and more.
  for (const int pid : {8, 9}) tree.remove(fmt::format("/proc/{}", pid));
  for (const int pid : {10, 11}) record_executed(tree, pid, 60'000, 30'200);
  observer.Read();
  EXPECT_EQ(observer.Read().process.shared_file_bytes, alone.process.shared_file_bytes + 2 * 30'200 * kKiB);
  record_executed(tree, 12, 200, 100);
  observer.Read();
  record_executed(tree, 12, 60'000, 20'000);
  for (const int pid : {10, 11}) record_executed(tree, pid, 60'000, 20'000);
  observer.Read();
  EXPECT_EQ(observer.Read().process.shared_file_bytes, alone.process.shared_file_bytes + 3 * 20'000 * kKiB);
}

TEST(ObserverRecorded, NewProgramsAreAskedForTheirShareByAndBy) {
  constexpr int kChildren = 100, kMostPerReading = 64;
  RecordedTree tree;
  record(tree, {});
  auto options = options_of(tree);
  options.cost_limit = 1e-12;
  Observer observer(7, options);
  const Sample alone = observer.Read();
  for (int i = 0; i < kChildren; ++i) record_executed(tree, 1000 + i, 6000, 60);
  const auto files = [&] {
    return observer.Read().process.shared_file_bytes - alone.process.shared_file_bytes;
  };
  // However many come at once, so many walks at a time: the others count as if their pages were their own.
  const int64_t own_each = 314 * kKiB;
  EXPECT_GE(files(), ((kChildren - kMostPerReading) * 6000 + kMostPerReading * 60) * kKiB);
  EXPECT_LE(files(), kChildren * (6000 * kKiB + own_each));
  int64_t last = 0;
  for (int i = 0; i < 4; ++i) last = files();
  // How many are asked in the milliseconds that it may take is the machine's affair: one at least.
  EXPECT_GE(last, kChildren * 60 * kKiB);
  EXPECT_LE(last, 60 * kKiB + (kChildren - 1) * (6000 * kKiB + own_each));
}

TEST(ObserverRecorded, MappingsThatMayNotBeRead) {
  RecordedTree tree;
  record(tree, {});
  tree.remove("/proc/7/smaps");
  const Sample sample = read_once(tree);
  ASSERT_FALSE(sample.gap) << sample.gap_reason;
  EXPECT_FALSE(sample.exact);
  EXPECT_EQ(sample.process.anonymous_bytes, 220 * kKiB);
  EXPECT_EQ(sample.process.shared_file_bytes, 314 * kKiB);
  EXPECT_EQ(sample.process.sum_bytes, sample.process.kernel_bytes);
}

// Everything that an account says would give memory back.
std::set<std::string> actions_of(const MemoryAccount& account) {
  std::set<std::string> actions;
  for (const auto* parts : {&account.process, &account.libraries, &account.container, &account.cached_files})
    for (const MemoryPart& part : *parts) actions.insert(part.returns_by);
  return actions;
}

TEST(ObserverRecorded, Version1InAHybridTree) {
  RecordedTree tree;
  record_member(tree, kMountsOfVersion1, "4:memory:/box/inner\n0::/\n");
  record(tree, {.threads = 2});
  tree.add("/sys/fs/cgroup/unified/cgroup.controllers", "\n");
  tree.add("/sys/fs/cgroup/unified/memory.pressure", "some avg10=3.50 avg60=0.50 avg300=0.10 total=9\n");
  record_version_1(tree, "/sys/fs/cgroup/memory/box/inner");
  Observer observer(7, options_of(tree));
  const Sample sample = observer.Read();
  ASSERT_TRUE(sample.container);
  const ContainerView& view = *sample.container;
  EXPECT_EQ(view.version, 1);
  EXPECT_EQ(view.path, "/box/inner");
  EXPECT_EQ(view.anonymous_bytes, 8388608);
  EXPECT_EQ(view.shared_memory_bytes, 1048576);
  EXPECT_EQ(view.page_cache_bytes, 4194304);
  EXPECT_EQ(view.page_table_bytes, 40 * kKiB);
  EXPECT_EQ(view.kernel_stack_bytes, 2 * 16 * kKiB);
  EXPECT_EQ(view.slab_bytes, 2097152 - 72 * kKiB);
  EXPECT_EQ(view.socket_bytes, 12288);
  EXPECT_EQ(view.sum_bytes, 15728640);  // sockets are not charged as memory
  EXPECT_EQ(view.kernel_bytes, 15728640);
  EXPECT_EQ(view.peak_bytes, 20971520);
  EXPECT_EQ(view.limit_bytes, 104857600);
  EXPECT_EQ(view.swap_bytes, 4096);
  EXPECT_DOUBLE_EQ(view.pressure_some_avg10, 3.5);
  const MemoryAccount account = observer.Account();
  EXPECT_EQ(account.container_unexplained_bytes, 0);
  EXPECT_THAT(actions_of(account), AllOf(Contains("memory.force_empty"), Not(Contains("memory.reclaim"))));
  for (const MemoryPart& part : account.libraries) EXPECT_EQ(part.returns_by, "memory.force_empty");
  int64_t sum = 0;
  for (const MemoryPart& part : account.container) {
    sum += part.bytes;
    if (part.name == "page_cache") {
      EXPECT_EQ(part.returnable_bytes, 3670016);
    }
  }
  EXPECT_EQ(sum, account.sample.container->sum_bytes);
  EXPECT_THAT(account.notes, Contains(HasSubstr("estimated")));
}

TEST(ObserverRecorded, TheRootOfVersion1LeavesKernelMemoryOutOfItsUsage) {
  RecordedTree tree;
  record_member(tree, kMountsOfVersion1, "4:memory:/\n0::/\n");
  record_version_1(tree, "/sys/fs/cgroup/memory");
  tree.add("/sys/fs/cgroup/memory/cgroup.sane_behavior", "0\n");
  tree.add("/sys/fs/cgroup/memory/memory.usage_in_bytes", "13631488\n");
  const auto container = read_once(tree).container;
  ASSERT_TRUE(container);
  EXPECT_EQ(container->sum_bytes, container->kernel_bytes);
}

TEST(ObserverRecorded, Version1SeenFromInsideAContainer) {
  RecordedTree tree;
  record_member(tree, kMountsInContainer, "4:memory:/docker/abc\n");
  record_version_1(tree, "/sys/fs/cgroup/memory");
  const Sample sample = read_once(tree);
  ASSERT_TRUE(sample.container);
  EXPECT_EQ(sample.container->kernel_bytes, 15728640);
}

TEST(ObserverRecorded, Version2Nested) {
  RecordedTree tree;
  record_member(tree, kMountsOfVersion2, "0::/outer/inner\n");
  tree.add("/sys/fs/cgroup/cgroup.controllers", "memory\n");
  record_version_2(tree, "/sys/fs/cgroup/outer/inner");
  tree.add("/sys/fs/cgroup/outer/memory.max", "67108864\n");
  Observer observer(7, options_of(tree));
  const Sample sample = observer.Read();
  ASSERT_TRUE(sample.container);
  const ContainerView& view = *sample.container;
  EXPECT_EQ(view.version, 2);
  EXPECT_EQ(view.anonymous_bytes, 8388608);
  EXPECT_EQ(view.page_cache_bytes, 4194304);
  EXPECT_EQ(view.shared_memory_bytes, 1048576);
  EXPECT_EQ(view.slab_bytes, 1572864);
  EXPECT_EQ(view.slab_reclaimable_bytes, 1048576);
  EXPECT_EQ(view.page_table_bytes, 131072);
  EXPECT_EQ(view.kernel_stack_bytes, 262144);
  EXPECT_EQ(view.socket_bytes, 98304);
  EXPECT_EQ(view.other_kernel_bytes, 3145728 - 1572864 - 131072 - 262144);
  EXPECT_EQ(view.sum_bytes, 8388608 + 5242880 + 3145728 + 98304);
  EXPECT_EQ(view.kernel_bytes, 17039360);
  EXPECT_EQ(view.peak_bytes, 18000000);
  EXPECT_EQ(view.limit_bytes, 67108864) << "the tightest on the way up";
  EXPECT_DOUBLE_EQ(view.pressure_some_avg10, 1.25);
  const MemoryAccount account = observer.Account();
  EXPECT_EQ(account.container_unexplained_bytes, 17039360 - view.sum_bytes);
  EXPECT_THAT(actions_of(account), AllOf(Contains("memory.reclaim"), Not(Contains("memory.force_empty"))));
}

TEST(ObserverRecorded, Version2CountsAnonymousPagesThatNobodyMapsAnyMore) {
  RecordedTree tree;
  record_member(tree, kMountsOfVersion2, "0::/job\n");
  record_version_2(tree, "/sys/fs/cgroup/job");
  // Parts of a huge page: 8 MiB are mapped, 10 MiB and 1 MiB of shared memory are on the lists.
  tree.add("/sys/fs/cgroup/job/memory.stat",
           std::string(kStatOfVersion2) + "inactive_anon 9437184\nactive_anon 2097152\n");
  const Sample sample = read_once(tree);
  ASSERT_TRUE(sample.container);
  EXPECT_EQ(sample.container->anonymous_bytes, 10 * 1024 * kKiB);
  EXPECT_EQ(sample.container->shared_memory_bytes, 1024 * kKiB);
}

TEST(ObserverRecorded, Version2BeforeItToldKernelMemoryAsAWhole) {
  RecordedTree tree;
  record_member(tree, kMountsOfVersion2, "0::/job\n");
  record_version_2(tree, "/sys/fs/cgroup/job");
  tree.add("/sys/fs/cgroup/job/memory.stat",
           "anon 4096\nfile 8192\nkernel_stack 16384\nsock 0\nshmem 0\npercpu 65536\nslab_reclaimable 4096\n"
           "slab_unreclaimable 8192\n");
  const Sample sample = read_once(tree);
  ASSERT_TRUE(sample.container);
  EXPECT_EQ(sample.container->slab_bytes, 12288);
  EXPECT_EQ(sample.container->other_kernel_bytes, 65536);
}

TEST(ObserverRecorded, Version2InACgroupNamespace) {
  // The container sees itself as the root; unlike the host's root it has a usage.
  RecordedTree tree;
  record_member(tree, kMountsOfVersion2, "0::/\n");
  record_version_2(tree, "/sys/fs/cgroup");
  EXPECT_TRUE(read_once(tree).container);
  tree.remove("/sys/fs/cgroup/memory.current");
  EXPECT_FALSE(read_once(tree).container) << "the host's root has none";
}

TEST(ObserverRecorded, AProcessThatIsMovedIsFollowed) {
  RecordedTree tree;
  record_member(tree, kMountsOfVersion2, "0::/one\n");
  record_version_2(tree, "/sys/fs/cgroup/one");
  record_version_2(tree, "/sys/fs/cgroup/two");
  tree.add("/sys/fs/cgroup/two/memory.current", "1\n");
  Observer observer(7, options_of(tree));
  EXPECT_EQ(observer.Read().container->path, "/one");
  tree.add("/proc/7/cgroup", "0::/two\n");
  const Sample moved = observer.Read();
  EXPECT_EQ(moved.container->path, "/two");
  EXPECT_EQ(moved.container->kernel_bytes, 1);
}

TEST(ObserverRecorded, ACgroupThatIsRemovedIsNoContainer) {
  RecordedTree tree;
  record_member(tree, kMountsOfVersion2, "0::/one\n");
  record_version_2(tree, "/sys/fs/cgroup/one");
  Observer observer(7, options_of(tree));
  tree.remove("/sys/fs/cgroup/one");
  const Sample sample = observer.Read();
  EXPECT_FALSE(sample.gap);
  EXPECT_FALSE(sample.container);
}

}  // namespace
}  // namespace plimsoll
