package recall

import (
	"slices"
	"testing"
)

// language is what a team knows and how it asks, in one language.
type language struct {
	name  string
	facts []string
	asked []question
}

// question is typed as people type: inflected otherwise than the fact, without
// the marks and joiners of careful writing.
type question struct {
	text string
	want int // which fact answers it
}

func TestSearch_languages(t *testing.T) {
	t.Parallel()
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			s := mustStore(t)
			mustFill(t, s, l.facts...)
			first := 0
			for _, q := range l.asked {
				want := l.facts[q.want]
				got := search(t, s, q.text)
				switch at := slices.Index(got, want); {
				case at == 0:
					first++
				case at < 0 || at > 2:
					t.Errorf("search %q = %q, want among the first three %q", q.text, got, want)
				default:
					t.Logf("search %q: place %d, behind %q", q.text, at+1, got[0])
				}
			}
			t.Logf("%d of %d first", first, len(l.asked))
			if len(l.asked) != 10 || first < 9 {
				t.Errorf("%d of %d questions find their fact first, want 9 of 10", first, len(l.asked))
			}
		})
	}
}

var languages = []language{
	{"german", []string{
		"Das Datenbankpasswort liegt im Tresor von HashiCorp Vault unter secret/db-prod.",
		"Die Zertifikate der Webserver laufen am 14. März ab und werden von Hand verlängert.",
		"Jeden Dienstag um 10 Uhr trifft sich das Plattform-Team zur Besprechung im Raum Elbe.",
		"Urlaubsanträge müssen mindestens drei Wochen vorher bei Frau Krämer eingereicht werden.",
		"Die Rechnungen an Kunden werden am Monatsende automatisch aus dem ERP verschickt.",
		"Größere Änderungen an der Schnittstelle brauchen die Freigabe von zwei Architekten.",
		"Die nächtliche Sicherung der Datenbanken dauert etwa vierzig Minuten.",
		"Für die Übersetzungen der Oberfläche ist das Büro in Köln zuständig.",
		"Der Testserver hat nur 8 GB Arbeitsspeicher und wird im Herbst ersetzt.",
		"Fehlgeschlagene Zahlungen werden dreimal wiederholt, danach bekommt der Kunde eine E-Mail.",
		"Der Schlüssel für das Büro hängt beim Empfang.",
		"Neue Mitarbeiterinnen bekommen in der ersten Woche einen Laptop und einen Paten.",
		"Die Suche im Shop läuft über Elasticsearch in zwei Rechenzentren.",
		"Protokolle werden dreißig Tage aufbewahrt und dann gelöscht.",
		"Wir veröffentlichen freitags grundsätzlich nicht.",
		"Der Drucker im zweiten Stock ist kaputt.",
		"Die Kantine bietet donnerstags vegetarisches Essen an.",
		"Das Passwort für das Gäste-WLAN wird jeden Montag geändert.",
		"Die Kundendaten dürfen die EU nicht verlassen.",
		"Für Bereitschaftsdienste am Wochenende gibt es einen Zuschlag von 25 Prozent.",
	}, []question{
		{"wo liegt das passwort der datenbank", 0},
		{"wann laeuft das zertifikat vom webserver ab", 1},
		{"in welchem raum sind die besprechungen vom plattform team", 2},
		{"bei wem muss ich meinen urlaubsantrag einreichen", 3},
		{"wann wird die rechnung an den kunden verschickt", 4},
		{"wer muss eine groessere aenderung der schnittstellen freigeben", 5},
		{"wie lange dauern die sicherungen nachts", 6},
		{"wer ist fuer die uebersetzung der oberflaechen zustaendig", 7},
		{"wieviel arbeitsspeicher haben die testserver", 8},
		{"was passiert wenn eine zahlung fehlschlaegt", 9},
	}},
	{"turkish", []string{
		"Üretim veritabanının yedekleri her gece saat 03:00'te alınır ve İzmir'deki sunucuya kopyalanır.",
		"Ödeme servisinin güncellemesi perşembe günü yapılacak.",
		"İzin talepleri en az iki hafta önce Ayşe Hanım'a iletilmelidir.",
		"Müşteri faturaları ayın son iş günü otomatik olarak gönderilir.",
		"Sunucu şifreleri Vault içinde saklanıyor, doksan günde bir değiştiriliyor.",
		"Haftalık toplantılar salı sabahı üçüncü kattaki mavi odada yapılıyor.",
		"Kod incelemesini en az iki kişi onaylamadan birleştirme yapılmaz.",
		"Mobil uygulamanın yeni sürümü Google Play'de onay bekliyor.",
		"Kayıt defterleri otuz gün tutulur, sonra silinir.",
		"Arama motoru olarak Elasticsearch kullanılıyor, iki ayrı veri merkezinde çalışıyor.",
		"Yeni çalışanlara ilk hafta dizüstü bilgisayar verilir.",
		"Ofisin kablosuz ağ parolası her pazartesi değişir.",
		"Yemekhane cuma günleri kapalıdır.",
		"Test ortamı yalnızca 8 GB belleğe sahip.",
		"Nöbet listesini Kerem hazırlıyor.",
		"Hata bildirimleri Jira üzerinden açılır.",
		"Toplantı odası rezervasyonu takvimden yapılır.",
		"Kargo şirketiyle sözleşme haziranda bitiyor.",
		"Ödemeler başarısız olursa üç kez yeniden denenir.",
		"Sertifikaların süresi eylülde doluyor.",
	}, []question{
		{"veritabani yedegi ne zaman aliniyor", 0},
		{"odeme servisini ne zaman guncelleyecegiz", 1},
		{"izin talebimi kime iletmeliyim", 2},
		{"MÜŞTERİLERE FATURA NE ZAMAN GÖNDERİLİYOR", 3},
		{"sunucularin sifresi nerede saklaniyor", 4},
		{"haftalik toplanti hangi odada", 5},
		{"kod incelemelerini kac kisinin onaylamasi gerekiyor", 6},
		{"mobil uygulamamizin yeni surumu onaylandi mi", 7},
		{"kayitlari kac gun tutuyoruz", 8},
		{"hangi arama motorunu kullaniyoruz", 9},
	}},
	{"russian", []string{
		"Резервные копии базы данных делаются каждую ночь в три часа и хранятся в Новосибирске.",
		"Пароли от серверов лежат в Vault, их меняют раз в квартал.",
		"Заявления на отпуск подают за две недели Ольге Семёновой.",
		"Счета клиентам уходят в последний рабочий день месяца.",
		"Еженедельная встреча платформенной команды проходит по вторникам в синей переговорке.",
		"Новую версию мобильного приложения выпустит Артём в четверг.",
		"Журналы ошибок хранятся тридцать дней, потом удаляются.",
		"Поиск работает на Elasticsearch в двух дата-центрах.",
		"Все запросы на слияние должны одобрить два разработчика.",
		"Сертификат веб-сервера истекает в сентябре.",
		"Тестовый стенд собирается двадцать минут, из них половина уходит на сборку образов.",
		"Неудачные платежи повторяются три раза.",
		"Пароль от гостевой сети меняется по понедельникам.",
		"Принтер на втором этаже сломан.",
		"Новым сотрудникам выдают ноутбук в первый день.",
		"Столовая закрыта в пятницу.",
		"График дежурств составляет Кирилл.",
		"Данные клиентов нельзя вывозить за границу.",
		"Договор с курьерской службой заканчивается в июне.",
		"Зелёный индикатор означает, что очередь пуста.",
	}, []question{
		{"где хранится резервная копия баз данных", 0},
		{"как часто меняем пароль сервера", 1},
		{"за сколько подавать заявление об отпуске", 2},
		{"когда клиенту отправят счет", 3},
		{"где встречается платформенная команда по вторникам", 4},
		{"кто будет выпускать новые версии приложения", 5},
		{"журнал с ошибками сколько дней храним", 6},
		{"сколько разработчиков одобряют запрос на слияние", 8},
		{"когда истекут сертификаты веб сервера", 9},
		{"что значит зеленый индикатор", 19},
	}},
	{"persian", []string{
		"نسخهٔ پشتیبان پایگاه داده هر شب ساعت ۳ گرفته می‌شود و در سرور تبریز نگهداری می‌شود.",
		"رمز عبور سرورها در Vault ذخیره می‌شود و هر ۹۰ روز عوض می‌شود.",
		"درخواست مرخصی را باید دو هفته زودتر به خانم کریمی بدهید.",
		"فاکتور مشتریان روز آخر ماه به صورت خودکار فرستاده می‌شود.",
		"جلسه‌های هفتگی تیم زیرساخت سه‌شنبه‌ها در اتاق آبی برگزار می‌شود.",
		"نسخه جدید برنامه موبایل را آرش پنجشنبه منتشر می‌کند.",
		"گزارش خطاها سی روز نگه داشته می‌شود و بعد پاک می‌شود.",
		"درگاه پرداخت روی پورت ۸۴۴۳ گوش می‌دهد.",
		"هر تغییر کد را باید دو نفر بازبینی کنند.",
		"گواهی امنیتی وب‌سایت شهریور منقضی می‌شود.",
		"جستجو با الاستیک‌سرچ در دو مرکز داده کار می‌کند.",
		"کارمندان تازه‌وارد روز اول لپ‌تاپ می‌گیرند.",
		"رمز وای‌فای مهمان هر شنبه تغییر می‌کند.",
		"چاپگر طبقه دوم خراب است.",
		"ناهارخوری جمعه‌ها بسته است.",
		"کیان برنامه کشیک را می‌نویسد.",
		"داده‌های مشتری نباید از کشور خارج شود.",
		"قرارداد با شرکت پست خرداد تمام می‌شود.",
		"پرداخت‌های ناموفق سه بار تکرار می‌شوند.",
		"دفتر مرکزی در خیابان انقلاب است.",
	}, []question{
		{"پشتيبان گيري پايگاه‌داده كي انجام ميشه", 0},
		{"رمزهای سرور کجا ذخیره میشن", 1},
		{"مرخصی ام رو به کی درخواست بدم", 2},
		{"فاكتورهاي مشتري ها كي فرستاده ميشود", 3},
		{"جلسه هفتگى زيرساخت توی کدوم اتاقه", 4},
		{"کی نسخه های جدید موبایل رو منتشر میکنه", 5},
		{"گزارشهای خطا چند روز نگهداری میشوند", 6},
		{"پورتِ درگاه پرداختمون چنده؟ 8443؟", 7},
		{"تغییرات کد رو چند نفر بازبینی می کنند", 8},
		{"گواهی های امنیتی وب سایت کی منقضی میشوند", 9},
	}},
	{"arabic", []string{
		"تؤخذ نسخة احتياطية من قاعدة البيانات كل ليلة في الثالثة وتحفظ في خادم جدة.",
		"كلمات مرور الخوادم محفوظة في Vault وتتغير كل تسعين يوماً.",
		"طلبات الإجازة تُرسل إلى الأستاذة منى قبل أسبوعين على الأقل.",
		"ترسل الفواتير للعملاء آلياً في آخر يوم من الشهر.",
		"الاجتماع الأسبوعي لفريق البنية التحتية يوم الثلاثاء في القاعة الزرقاء.",
		"سيصدر الإصدار الجديد من تطبيق الجوال يوم الخميس على يد سامر.",
		"تحفظ سجلات الأخطاء ثلاثين يوماً ثم تُحذف.",
		"بوابة الدفع تعمل على المنفذ ٨٤٤٣.",
		"كل تعديل في الشيفرة يحتاج إلى مراجعة مهندسَين اثنين.",
		"شهادة الموقع الأمنية تنتهي في سبتمبر.",
		"البحث يعمل على Elasticsearch في مركزين للبيانات.",
		"يستلم الموظف الجديد حاسوباً محمولاً في يومه الأول.",
		"كلمة سر شبكة الضيوف تتغير كل أحد.",
		"الطابعة في الطابق الثاني معطلة.",
		"المطعم مغلق يوم الجمعة.",
		"يعد خالد جدول المناوبات.",
		"لا يجوز إخراج بيانات العملاء من البلاد.",
		"عقد شركة الشحن ينتهي في يونيو.",
		"تعاد المدفوعات الفاشلة ثلاث مرات.",
		"مفتاح غرفة الخوادم عند الاستقبال.",
	}, []question{
		{"متى ناخذ النسخ الاحتياطيه لقواعد البيانات", 0},
		{"وين محفوظه كلمه مرور الخادم", 1},
		{"لمين نرسل طلب اجازه", 2},
		{"متى ترسل فاتورة العميل", 3},
		{"اجتماعات فريق البنيه التحتيه في اي قاعه", 4},
		{"مين بيصدر الاصدارات الجديدة لتطبيقات الجوال", 5},
		{"كم يوم تحفظون سجل الاخطاء", 6},
		{"بوابات الدفع على اي منفذ", 7},
		{"كم مهندس يراجع التعديلات بالشيفرة", 8},
		{"متى تنتهي شهادات الموقع", 9},
	}},
	{"urdu", []string{
		"ڈیٹابیس کا بیک اپ ہر رات تین بجے لیا جاتا ہے اور لاہور کے سرور پر رکھا جاتا ہے۔",
		"سرورز کے پاس ورڈ والٹ میں محفوظ ہیں اور ہر نوے دن بعد بدلے جاتے ہیں۔",
		"چھٹی کی درخواست دو ہفتے پہلے مس عائشہ کو دینی ہوتی ہے۔",
		"گاہکوں کے بل مہینے کے آخری دن خودبخود بھیجے جاتے ہیں۔",
		"ہفتہ وار میٹنگ منگل کو نیلے کمرے میں ہوتی ہے۔",
		"موبائل ایپ کا نیا ورژن جمعرات کو بلال جاری کرے گا۔",
		"غلطیوں کا ریکارڈ تیس دن رکھا جاتا ہے پھر مٹا دیا جاتا ہے۔",
		"ادائیگی کا گیٹ وے پورٹ ۸۴۴۳ پر چلتا ہے۔",
		"کوڈ کی ہر تبدیلی کا جائزہ دو انجینئر لیتے ہیں۔",
		"ویب سائٹ کا سرٹیفکیٹ ستمبر میں ختم ہو جائے گا۔",
		"تلاش کا نظام الاسٹک سرچ پر دو ڈیٹا سینٹروں میں چلتا ہے۔",
		"نئے ملازمین کو پہلے دن لیپ ٹاپ ملتا ہے۔",
		"مہمانوں کے وائی فائی کا پاس ورڈ ہر پیر کو بدلتا ہے۔",
		"دوسری منزل کا پرنٹر خراب ہے۔",
		"کینٹین جمعے کو بند رہتی ہے۔",
		"ڈیوٹی کی فہرست فہد بناتا ہے۔",
		"گاہکوں کا ڈیٹا ملک سے باہر نہیں جا سکتا۔",
		"کوریئر کمپنی کا معاہدہ جون میں ختم ہو رہا ہے۔",
		"ناکام ادائیگیاں تین بار دہرائی جاتی ہیں۔",
		"استقبالیہ پر سرور روم کی چابی رکھی ہے۔",
	}, []question{
		{"ڈيٹابيس كے بيك اپ كب ليے جاتے هيں", 0},
		{"سرور كا پاس ورڈ كهاں محفوظ هے", 1},
		{"چھٹیوں کی درخواستیں کس کو دینی ہیں", 2},
		{"گاہک کو بل کب بھیجا جائے گا", 3},
		{"هفته وار میٹنگز کس کمرہ میں ہوتی ہیں", 4},
		{"موبائل ایپ کے نئے ورژنز کون جاری کرتا ہے", 5},
		{"غلطی کے ریکارڈز کتنے دن رکھتے ہیں", 6},
		{"ادائيگيوں كا گيٹ وے كس پورٹ پر هے", 7},
		{"کوڈ میں تبدیلیوں کے جائزے کتنے انجینئرز لیتے ہیں", 8},
		{"ويب سائٹس كے سرٹيفكيٹس كب ختم هوں گے", 9},
	}},
	{"chinese", []string{
		"生产数据库每天凌晨3点备份，备份文件保存在杭州机房。",
		"服务器密码存放在Vault里，每90天更换一次。",
		"请假申请需要提前两周提交给王经理。",
		"客户账单每月最后一个工作日自动发送。",
		"平台组每周二上午在三楼蓝色会议室开例会。",
		"移动端新版本由李明在周四发布。",
		"错误日志保留30天，之后自动删除。",
		"支付网关监听8443端口。",
		"代码合并前必须由两名工程师评审通过。",
		"官网的SSL证书九月到期。",
		"搜索服务基于Elasticsearch，部署在两个数据中心。",
		"新员工入职第一天领取笔记本电脑。",
		"访客WiFi密码每周一更换。",
		"二楼的打印机坏了。",
		"食堂周五不营业。",
		"值班表由张伟负责安排。",
		"客户数据不得出境。",
		"与快递公司的合同六月到期。",
		"支付失败后会重试三次。",
		"机房钥匙放在前台。",
	}, []question{
		{"数据库的备份存在哪个机房?", 0},
		{"服务器的密码放在哪", 1},
		{"请假要提前多久申请", 2},
		{"账单什么时候发给客户", 3},
		{"平台组例会在哪个会议室", 4},
		{"谁发布移动端的新版", 5},
		{"错误的日志会保留几天", 6},
		{"支付网关用的是哪个端口，８４４３吗", 7},
		{"合并代码要几个工程师评审", 8},
		{"ssl证书啥时候过期", 9},
	}},
	{"japanese", []string{
		"本番データベースのバックアップは毎晩３時に取得し、大阪のサーバーに保管しています。",
		"サーバーのパスワードはVaultに保存され、90日ごとに変更されます。",
		"休暇の申請は2週間前までに田中さんへ提出してください。",
		"顧客への請求書は月末の営業日に自動で送付されます。",
		"プラットフォームチームの定例会議は火曜の午前に3階の会議室で開かれます。",
		"モバイルアプリの新しいバージョンは木曜に佐藤さんがリリースします。",
		"エラーログは30日間保存し、その後削除します。",
		"決済ゲートウェイは8443番ポートで待ち受けています。",
		"コードの変更は2人のエンジニアによるレビューが必要です。",
		"ウェブサイトの証明書は9月に期限が切れます。",
		"検索にはElasticsearchを使い、2つのデータセンターで動かしています。",
		"新入社員には初日にノートパソコンを渡します。",
		"来客用Wi-Fiのパスワードは毎週月曜に変わります。",
		"2階のプリンターは壊れています。",
		"食堂は金曜日に休みます。",
		"当番表は鈴木さんが作ります。",
		"顧客データを国外に持ち出してはいけません。",
		"運送会社との契約は6月で終わります。",
		"決済に失敗した場合は3回まで再試行します。",
		"サーバー室の鍵は受付にあります。",
	}, []question{
		{"データベースのﾊﾞｯｸｱｯﾌﾟはどこに保管してる？", 0},
		{"サーバのパスワードどこに保存してあるの", 1},
		{"休暇を申請したいけど誰に出せばいい？", 2},
		{"請求書っていつお客さんに送られる？", 3},
		{"定例会議はどの会議室でやってるの", 4},
		{"アプリの新バージョンは誰がﾘﾘｰｽするの", 5},
		{"決済ｹﾞｰﾄｳｪｲのポート番号は", 7},
		{"コード変更のレビューは何人必要ですか", 8},
		{"証明書の期限いつ切れる？", 9},
		{"壊れたプリンタって何階？", 13},
	}},
	{"korean", []string{
		"운영 데이터베이스는 매일 새벽 3시에 백업되어 부산 서버에 보관됩니다.",
		"서버 비밀번호는 Vault에 저장하고 90일마다 변경합니다.",
		"휴가 신청서는 2주 전까지 김 팀장에게 제출해야 합니다.",
		"고객 청구서는 매월 마지막 영업일에 자동으로 발송됩니다.",
		"플랫폼팀 주간 회의는 화요일 오전 3층 파란 회의실에서 열립니다.",
		"모바일 앱의 새 버전은 목요일에 이민호가 배포합니다.",
		"오류 로그는 30일 동안 보관한 뒤 삭제합니다.",
		"결제 게이트웨이는 8443 포트에서 동작합니다.",
		"코드를 병합하려면 엔지니어 두 명의 검토가 필요합니다.",
		"웹사이트 인증서는 9월에 만료됩니다.",
		"검색 서비스는 Elasticsearch를 쓰고 두 데이터센터에서 돌아갑니다.",
		"신입 사원은 첫날 노트북을 받습니다.",
		"손님용 와이파이 비밀번호는 매주 월요일에 바뀝니다.",
		"2층 프린터가 고장 났습니다.",
		"구내식당은 금요일에 쉽니다.",
		"당직표는 박지수가 작성합니다.",
		"고객 데이터는 해외로 내보낼 수 없습니다.",
		"택배 회사와의 계약은 6월에 끝납니다.",
		"결제가 실패하면 세 번 다시 시도합니다.",
		"서버실 열쇠는 안내 데스크에 있습니다.",
	}, []question{
		{"데이터 베이스 백업을 어디에 보관하나요", 0},
		{"서버의 비밀번호를 어디에 저장했어?", 1},
		{"휴가신청서를 누구한테 제출하지", 2},
		{"고객에게 청구서가 언제 발송되나요", 3},
		{"플랫폼 팀 주간회의가 어느 회의실에서 열려?", 4},
		{"모바일앱 새버전을 누가 배포해요", 5},
		{"오류로그를 며칠간 보관해?", 6},
		{"결제게이트웨이 포트가 뭐예요", 7},
		{"코드 병합할때 몇명이 검토해야 하나", 8},
		{"웹 사이트의 인증서가 언제 만료돼?", 9},
	}},
}
