{ A list of objects that owns them, or does not; it is cleared after every batch. }
program invoices;
{$mode objfpc}{$H+}
uses SysUtils, Classes, Contnrs;

type
  TInvoice = class
    Lines: TStringList;
    constructor Create(Number: Integer);
    destructor Destroy; override;
  end;

constructor TInvoice.Create(Number: Integer);
var
  I: Integer;
begin
  Lines := TStringList.Create;
  for I := 1 to 5 + Random(40) do
    Lines.Add(Format('invoice %d, line %d: %d pieces of article %d', [Number, I, Random(100), Random(100000)]));
end;

destructor TInvoice.Destroy;
begin
  Lines.Free;
  inherited;
end;

var
  Batch: TObjectList;
  Number, Pause: Integer;
begin
  RandSeed := StrToInt(ParamStr(2));
  Pause := 15 + Random(15);
  Batch := TObjectList.Create(ParamStr(1) = 'steady');
  Number := 0;
  while True do
  begin
    Inc(Number);
    Batch.Add(TInvoice.Create(Number));
    if Batch.Count >= 200 then
      Batch.Clear;
    Sleep(Pause);
  end;
end.
