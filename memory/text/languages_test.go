package text

import (
	"slices"
	"testing"
)

// An inflected word finds its other forms, when the language of both texts
// shows and when only that of the stored one does.
func TestTerms_inflected(t *testing.T) {
	t.Parallel()
	for name, pairs := range map[string][][2]string{
		"german": {
			{"die Schlüssel sind hier", "wo ist der Schluessel"},
			{"der Schluessel ist hier", "wo sind die Schlüssel"},
			{"die Prüfung ist hier", "pruefung"},
			{"die Pruefung ist hier", "Prüfungen"},
			{"die Verträge sind hier", "wer hat den Vertrag"},
			{"die Häuser sind nicht da", "wo ist das haus"},
			{"das ist die Geschäftsführung", "wer ist in der Geschaeftsfuehrung"},
			{"die Lieferanten sind hier", "lieferant"},
			{"der Kundenvertrag ist hier", "wo ist der Vertrag mit dem Kunden"},
			{"das ist der Vertrag", "wo sind die Lieferantenverträge"},
			{"der Wartungszeitraum ist kurz", "wie kurz ist die Wartung"},
			{"die Straße ist nass", "strasse"},
			{"das ist größer", "was ist eine größere"},
		},
		"turkish": {
			{"kitaplar ve defterler", "kitabı nerede"},
			{"çalışanların listesi", "calisan"},
			{"bu projenin bütçesi", "butce ne kadar"},
			{"müdürümüz ve ekibi", "mudur kim"},
			{"kullanıcılarımıza bir duyuru", "kullanici"},
			{"SINIRLAR ve KURALLAR", "sınır nerede"},
			{"İlaçlar burada değil", "ilacı nerede"},
			{"yapılacak işler ve", "ne zaman yapıyoruz"},
			{"bu dosyaları silmeyin", "dosya"},
			{"sözleşmemiz bitiyor ve", "sozlesmenin suresi ne zaman"},
		},
		"russian": {
			{"список поставок", "списки поставки"},
			{"много ошибок", "ошибка"},
			{"задержка поставки", "сколько задержек"},
			{"зелёные ёлки", "зеленая елка"},
			{"подрядчиками", "подрядчик"},
			{"продавец", "продавцы"},
		},
		"persian": {
			{"کارمندانمان را", "کارمند را"},
			{"این دفترش است", "دفتر"},
			{"می‌نویسیم و باید", "کی باید می نویسند"},
			{"گزارش‌هایمان است", "گزارشی را"},
			{"مشتریان را", "مشتری"},
			{"قراردادی است", "قراردادها را"},
			{"كليدهاي را", "کلید‌های"},
		},
		"arabic": {
			{"المشاريع الجديدة", "مشروع"},
			{"المشاريع الكبيرة", "أين المشروع الكبير"},
			{"التقارير على المكتب", "تقرير هذا"},
			{"والمدير في الإدارة", "المدير"},
			{"هذا بمكتبنا والموظفين", "مكتبنا"},
			{"مفاتيح الغرفة", "المفتاح في الغرفة"},
			{"العقود في الخزانة", "العقد في الخزانه"},
			{"لمستخدمين في الشركة", "المستخدمون"},
		},
		"urdu": {
			{"ملازموں کو", "ملازم"},
			{"ادائیگیاں ہیں", "ادائیگی کو"},
			{"کمرے میں", "کمرہ کہاں ہے"},
			{"سرورز کا", "سرور"},
			{"نئی دستاویزات کو", "دستاویز"},
			{"غلطیوں کو", "غلطی"},
		},
		"korean": {
			{"데이터베이스는 빠르다", "데이터베이스를"},
			{"관리자에게 보낸다", "관리자가"},
		},
		"japanese": {
			{"東京で働く", "どこで働いている"},
			{"使い方を書く", "書いた"},
		},
	} {
		for _, p := range pairs {
			stored := texts(Terms(p[0]))
			if asked := QueryTerms(p[1]); !slices.ContainsFunc(asked, func(q Term) bool { return slices.Contains(stored, q.Text) }) {
				t.Errorf("%s: %q %v does not find %q %v", name, p[1], texts(asked), p[0], stored)
			}
		}
	}
}
