package record

import (
	"reflect"
	"strings"
	"unicode/utf8"
)

// CheckUTF8 refuses a request that holds text that is not valid UTF-8
// anywhere. JSON would replace the bad bytes without a word, so a client asks
// before it encodes.
func CheckUTF8(req any) error { return checkUTF8("", reflect.ValueOf(req)) }

func checkUTF8(field string, v reflect.Value) error {
	switch v.Kind() {
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return Errorf(InvalidUTF8, field, "the text is not valid UTF-8")
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() {
				continue
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" {
				name = field
			}
			if err := checkUTF8(name, v.Field(i)); err != nil {
				return err
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return nil
		}
		for i := range v.Len() {
			if err := checkUTF8(field, v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return checkUTF8(field, v.Elem())
		}
	}
	return nil
}
