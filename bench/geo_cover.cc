/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares covers of circles by rq_geo_cover and by S2 (Debian's libs2): number of key ranges, and
 * covered area as a multiple of the circle's area. make bench-cover
 */
#include "rorqual/rowkey.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <s2/s2cap.h>
#include <s2/s2cell_union.h>
#include <s2/s2latlng.h>
#include <s2/s2region_coverer.h>
#include <vector>

namespace {

const unsigned letters = 12, bits = 5 * letters;
const int circles = 1000;

double chance()
{
    return rand() / (double)RAND_MAX;
}

unsigned long long number_of(const char *hash)
{
    static const char all[] = "0123456789bcdefghjkmnpqrstuvwxyz";
    unsigned long long v = 0;
    for (size_t i = 0; i < letters; i++)
        v = v << 5 | (i < strlen(hash) ? (unsigned long long)(strchr(all, hash[i]) - all) : 0);
    return v;
}

/* The area in steradians of a cell that consists of 2^shift smallest cells. */
double cell_area(unsigned long long first, unsigned shift)
{
    unsigned level = bits - shift;
    unsigned long long cell = first >> shift, y = 0;
    for (unsigned i = 1; i < level; i += 2)
        y = y << 1 | (cell >> (level - 1 - i) & 1);
    double height = M_PI / std::ldexp(1, (int)(level / 2)), south = -M_PI / 2 + (double)y * height;
    return 2 * M_PI / std::ldexp(1, (int)((level + 1) / 2)) * (std::sin(south + height) - std::sin(south));
}

double area_of(const rq_geo_ranges *r)
{
    double sum = 0;
    for (size_t i = 0; i < r->count; i++) {
        unsigned long long at = number_of(r->items[i].start);
        unsigned long long end = r->items[i].stop[0] == 0 ? 1ull << bits : number_of(r->items[i].stop);
        while (at < end) {
            unsigned shift = 0;
            while (shift < bits && (at & ((2ull << shift) - 1)) == 0 && at + (2ull << shift) <= end)
                shift++;
            sum += cell_area(at, shift);
            at += 1ull << shift;
        }
    }
    return sum;
}

/* Adjacent cells form one range of keys. */
size_t ranges_of(const S2CellUnion &cover)
{
    size_t ranges = 0;
    for (int i = 0; i < (int)cover.num_cells(); i++)
        ranges += i == 0 || cover.cell_id(i).range_min().id() != cover.cell_id(i - 1).range_max().id() + 2;
    return ranges;
}

void compare(int most)
{
    double ours = 0, s2 = 0, our_ranges = 0, s2_ranges = 0;
    for (int i = 0; i < circles; i++) {
        rq_area a = {};
        rq_geo_ranges *r;
        rq_failure why = {};
        why.size = sizeof why;
        a.size = sizeof a;
        a.kind = RQ_AREA_CIRCLE;
        a.center = {std::asin(2 * chance() - 1) * 180 / M_PI, 360 * chance() - 180};
        a.radius_m = 1000 * std::pow(10, 3 * chance() - 0.5);
        S2Cap cap(S2LatLng::FromDegrees(a.center.latitude, a.center.longitude).ToPoint(), S1Angle::Radians(a.radius_m / 6371008.8));
        S2RegionCoverer::Options options;
        options.set_max_cells(most);
        S2CellUnion cover = S2RegionCoverer(options).GetCovering(cap);
        if (rq_geo_cover(&a, letters, (size_t)most, &r, &why) != RQ_OK) {
            fprintf(stderr, "%s\n", why.message);
            exit(1);
        }
        ours += area_of(r) / cap.GetArea();
        s2 += cover.ExactArea() / cap.GetArea();
        our_ranges += (double)r->count;
        s2_ranges += (double)ranges_of(cover);
        rq_geo_ranges_free(r);
    }
    printf("| %d | %.1f | %.2f | %.1f | %.2f |\n", most, our_ranges / circles, ours / circles, s2_ranges / circles, s2 / circles);
}

} // namespace

int main()
{
    printf("| at most | ranges | area | S2's ranges | area |\n|---|---|---|---|---|\n");
    for (int most : {4, 8, 16, 32, 64})
        compare(most);
    return 0;
}
