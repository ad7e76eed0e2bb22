package conflict

import (
	"regexp"
	"strconv"
	"strings"
)

// spellOut brings what Chinese and Japanese write in several ways to one form,
// before the text is cut into characters: numerals, times of day, weekdays and
// frequencies.
func spellOut(s string) string {
	if !hanOrKana(s) {
		return s
	}
	s = hanWords.Replace(s)
	s = hanNumeral.ReplaceAllStringFunc(s, func(m string) string {
		unit := m[len(strings.TrimRight(m, hanUnits)):]
		n, ok := hanNumber(strings.TrimSuffix(m, unit))
		if !ok {
			return m
		}
		return strconv.Itoa(n) + unit
	})
	return hanClock.ReplaceAllStringFunc(s, func(m string) string {
		p := hanClock.FindStringSubmatch(m)
		h, err := strconv.Atoi(p[2])
		if err != nil || h > 24 {
			return m
		}
		if h < 12 && (p[1] == "下午" || p[1] == "晚上" || p[1] == "午後") {
			h += 12
		}
		minutes := p[4]
		if p[3] == "半" {
			minutes = "30"
		}
		if minutes == "" {
			minutes = "00"
		}
		if len(minutes) == 1 {
			minutes = "0" + minutes
		}
		return strconv.Itoa(h) + ":" + minutes
	})
}

func hanOrKana(s string) bool {
	for _, r := range s {
		if r >= 0x3040 && r <= 0x9FFF {
			return true
		}
	}
	return false
}

// hanUnits are what numerals count; a numeral without one may be part of a
// word.
const hanUnits = "天周月年点时時分秒次人名个個台回日度件位号"

var (
	hanNumeral = regexp.MustCompile(`[一二三四五六七八九十两百]+(?:小时|分钟|[` + hanUnits + `])`)
	hanClock   = regexp.MustCompile(`(上午|下午|早上|晚上|凌晨|午前|午後)?(\d{1,2})(?:点钟|点|時)(半)?(?:(\d{1,2})分)?`)
	hanWords   = strings.NewReplacer(
		"每个星期", "每周", "每星期", "每周", "星期天", "周日", "星期", "周", "礼拜", "周", "曜日", "曜",
		"上线", "发布", "一律", "", "每一天", "每天", "每日", "每天", "天天", "每天", "一天一次", "每天一次", "一周一次", "每周一次", "一个月一次", "每月一次",
		"日次", "毎日", "週次", "毎週", "月次", "毎月", "一日に一度", "毎日", "週に一度", "毎週", "週に一回", "毎週", "週に1回", "毎週", "月に一度", "毎月", "月に一回", "毎月",
	)
)

// hanNumber reads a numeral below a thousand.
func hanNumber(s string) (int, bool) {
	digits := map[rune]int{'一': 1, '二': 2, '两': 2, '三': 3, '四': 4, '五': 5, '六': 6, '七': 7, '八': 8, '九': 9}
	total, last := 0, 0
	for _, r := range s {
		switch r {
		case '十':
			total += max(1, last) * 10
			last = 0
		case '百':
			total += max(1, last) * 100
			last = 0
		default:
			if last > 0 {
				return 0, false
			}
			last = digits[r]
		}
	}
	total += last
	return total, total > 0
}
