package location

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/wsmount/wsmount/mountspec/host/endpoint"
	"github.com/wsmount/wsmount/mountspec/host/ondisk"
)

// Sharing calls f with each two of many places that share bytes, as SharesBytes says of two.
// It costs as much as each place is deep, however many there are.
func Sharing(places []Location, on *ondisk.Disks, f func(i, j int)) {
	named := map[string][]int{}
	above := make([][]string, len(places))
	for i, l := range places {
		var own []string
		own, above[i] = l.names(on)
		for _, name := range own {
			named[name] = append(named[name], i)
		}
	}
	seen := map[[2]int]bool{}
	for i := range places {
		for _, name := range above[i] {
			for _, j := range named[name] {
				if pair := [2]int{min(i, j), max(i, j)}; i != j && !seen[pair] && places[i].SharesBytes(places[j], on) {
					seen[pair] = true
					f(pair[0], pair[1])
				}
			}
		}
	}
}

// names are names of a place, and of those that it lies in, itself among them.
func (l Location) names(on *ondisk.Disks) (own, above []string) {
	service := fmt.Sprintf("%s %s ", l.Service, endpoint.Service(l.Endpoint))
	switch l.Service {
	case "":
		return nil, nil
	case Dir:
		return on.Names(l.Prefix)
	case Git: // of which branches are few
		own = []string{service + strings.ToLower(l.Bucket)}
	case Raw:
		own = []string{service + l.Prefix}
	default:
		for p := path.Join("/", l.Prefix); ; p = path.Dir(p) {
			if above = append(above, service+l.Bucket+p); p == "/" {
				return above[:1], above
			}
		}
	}
	return own, slices.Clone(own)
}
